// Watches how long work keeps the event loop. Each turn counts with the smaller of its CPU time and its wall time: a busy machine
// stretches the second, and the first alone would count other turns.

const everyMs = 20;

export class LoopWatch {
  #longestMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #last = { cpu: process.threadCpuUsage(), wall: performance.now() };

  start(): void {
    this.#tick();
    this.#longestMs = 0;
    this.#timer = setInterval(() => this.#tick(), everyMs);
  }

  /** The longest time so far. */
  stop(): number {
    if (this.#timer !== undefined) this.#tick();
    clearInterval(this.#timer);
    this.#timer = undefined;
    return this.#longestMs;
  }

  #tick(): void {
    const { user, system } = process.threadCpuUsage(this.#last.cpu);
    this.#longestMs = Math.max(this.#longestMs, Math.min((user + system) / 1000, performance.now() - this.#last.wall) - everyMs);
    this.#last = { cpu: process.threadCpuUsage(), wall: performance.now() };
  }
}
