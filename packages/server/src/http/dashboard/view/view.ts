// Opens viewers and writes pages. What they need is loaded only then: most commands and all workers need none of it.

import type { ViewSource, ViewSourceOptions } from './view-source.ts';
import type { Viewer, ViewerOptions } from './viewer.ts';

/** The dashboard on what lies at a path. */
export async function viewPath(options: ViewerOptions): Promise<Viewer> {
  const { openViewer } = await import('./viewer.ts');
  return await openViewer(options);
}

export async function openSource(options: ViewSourceOptions): Promise<ViewSource> {
  const { openViewSource } = await import('./open-source.ts');
  return await openViewSource(options);
}

/** One page with these rollouts and all that shows them. */
export async function toExportedPage(source: ViewSource, ids: readonly string[]): Promise<string> {
  const { exportPage } = await import('./export-page.ts');
  return await exportPage(source, ids);
}
