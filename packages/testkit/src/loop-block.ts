// How long work keeps the event loop from its next turn. Each turn counts with the smaller of its CPU time and its wall time: a busy
// machine stretches the second, and the first is counted in steps of milliseconds on some machines.

export async function measureLoopBlock(work: () => Promise<unknown>): Promise<number> {
  let isOver = false;
  let longestMs = 0;
  let last = { cpu: process.threadCpuUsage(), wall: performance.now() };
  const tick = () => {
    const { user, system } = process.threadCpuUsage(last.cpu);
    longestMs = Math.max(longestMs, Math.min((user + system) / 1000, performance.now() - last.wall));
    last = { cpu: process.threadCpuUsage(), wall: performance.now() };
    if (!isOver) setImmediate(tick);
  };
  setImmediate(tick);
  await work();
  await new Promise((resolve) => setImmediate(resolve));
  isOver = true;
  return longestMs;
}
