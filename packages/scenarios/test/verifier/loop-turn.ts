// Whether work leaves the event loop free: it takes a turn before the work is done.

export async function letsLoopTurn(work: () => Promise<unknown>): Promise<boolean> {
  let hasTurned = false;
  setImmediate(() => {
    hasTurned = true;
  });
  await work();
  return hasTurned;
}
