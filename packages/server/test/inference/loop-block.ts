// How long work keeps the event loop from its next turn, in CPU time of this thread, so that a busy machine does not show.

export async function measureLoopBlock(work: () => Promise<unknown>): Promise<number> {
  let isOver = false;
  let longestMs = 0;
  let last = process.threadCpuUsage();
  const tick = () => {
    const { user, system } = process.threadCpuUsage(last);
    last = process.threadCpuUsage();
    longestMs = Math.max(longestMs, (user + system) / 1000);
    if (!isOver) setImmediate(tick);
  };
  setImmediate(tick);
  await work();
  await new Promise((resolve) => setImmediate(resolve));
  isOver = true;
  return longestMs;
}
