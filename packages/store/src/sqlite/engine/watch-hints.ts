// Hints through a file next to the database. A writer touches it after each commit that wrote an event, and every process watches
// it. Watching the WAL file does not work: it changes before the commit is visible, so the last commit of a burst is missed.

import { watch } from 'node:fs';
import type { Log } from '@millrace/base/log';
import { messageOf } from '@millrace/protocol';

/** Returns a function that stops it. A watch that fails is logged: the poll of the hints is left. */
export function watchHints(path: string, { log, onChange }: { readonly log: Log; readonly onChange: () => void }): () => void {
  const onFailure = (error: unknown) => log.warn('store-watch-failed', { path, error: messageOf(error) });
  try {
    const watcher = watch(`${path}-hint`, { persistent: false }, () => onChange()).on('error', onFailure);
    return () => watcher.close();
  } catch (error) {
    onFailure(error);
    return () => {};
  }
}
