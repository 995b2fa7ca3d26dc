// Opens the dashboard on a file. The HTTP server is loaded only then: most commands and all workers need none.

import type { FileViewer, FileViewerOptions } from './file-viewer.ts';

export async function viewFile(options: FileViewerOptions): Promise<FileViewer> {
  const { openFileViewer } = await import('./file-viewer.ts');
  return await openFileViewer(options);
}
