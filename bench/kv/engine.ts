// An engine in virtual time, with the mechanism of vLLM's scheduler: paged blocks, a prefix cache, continuous batching, chunked prefill,
// and preemption of the request that came last. The time of a step is a model with five constants.

import { BlockPool } from './block-pool.ts';

export interface EngineShape {
  readonly blockTokens: number;
  readonly blocks: number;
  /** The tokens of one step, and the requests that may run at the same time. */
  readonly stepTokens: number;
  readonly maxRunning: number;
  readonly cost: StepCost;
}

/** Seconds. */
interface StepCost {
  /** Of any step: weights are read, kernels are launched, and the scheduler runs. */
  readonly step: number;
  /** For each token that is computed, and for each token before it that it attends to. */
  readonly token: number;
  readonly pair: number;
  /** For each token in the context of a request that samples. */
  readonly read: number;
  /** For each request that samples. */
  readonly sample: number;
}

interface EngineRequest {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Names the content of a block, so that equal prefixes are found. */
  readonly blockKey: (index: number) => number;
  onFirstToken(now: number): void;
  onEnd(end: { readonly now: number; readonly cachedTokens: number; readonly preemptions: number }): void;
}

interface EngineCounts {
  promptTokens: number;
  /** Found in the cache when a request was admitted. */
  cachedTokens: number;
  /** The same over all lookups. vLLM before 0.30 reports these: a request that does not fit is looked up again in each step. */
  lookedUpTokens: number;
  foundTokens: number;
  computedTokens: number;
  sampledTokens: number;
  preemptions: number;
  steps: number;
  busyS: number;
}

interface RunningRequest {
  readonly request: EngineRequest;
  readonly blocks: number[];
  computed: number;
  sampled: number;
  cachedTokens: number | undefined;
  preemptions: number;
  /** The tokens of the current step. */
  scheduled: number;
}

export class SimEngine {
  readonly shape: EngineShape;
  readonly counts: EngineCounts = {
    promptTokens: 0,
    cachedTokens: 0,
    lookedUpTokens: 0,
    foundTokens: 0,
    computedTokens: 0,
    sampledTokens: 0,
    preemptions: 0,
    steps: 0,
    busyS: 0,
  };
  readonly #pool: BlockPool;
  readonly #waiting: RunningRequest[] = [];
  #running: RunningRequest[] = [];
  /** The first that waits, what it found, and the blocks that were free when it did not fit. */
  #blocked: { readonly one: RunningRequest; readonly found: number; readonly free: number } | undefined;

  constructor(shape: EngineShape) {
    this.shape = shape;
    this.#pool = new BlockPool(shape.blocks);
  }

  get capacityTokens(): number {
    return this.shape.blocks * this.shape.blockTokens;
  }

  get running(): number {
    return this.#running.length;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** The share of blocks that requests hold. What is only cached does not count, as in vLLM's metric. */
  get usage(): number {
    return 1 - this.#pool.free / this.#pool.size;
  }

  get isIdle(): boolean {
    return this.#running.length === 0 && this.#waiting.length === 0;
  }

  submit(request: EngineRequest): void {
    this.#waiting.push({ request, blocks: [], computed: 0, sampled: 0, cachedTokens: undefined, preemptions: 0, scheduled: 0 });
  }

  /** As after a restart, or after new weights. */
  flush(): void {
    this.#pool.clear();
  }

  /** Schedules one step and returns how long it takes; `finish` ends it. */
  begin(): number {
    for (const one of this.#running) one.scheduled = 0;
    const left = this.#scheduleRunning(this.shape.stepTokens);
    if (left >= 0) this.#scheduleWaiting(left);
    const { step, token, pair, read, sample } = this.shape.cost;
    let seconds = step;
    for (const { scheduled, computed, request } of this.#running) {
      if (scheduled === 0) continue;
      if (computed >= request.promptTokens) seconds += sample + read * computed;
      else seconds += scheduled * token + pair * scheduled * (computed + scheduled / 2);
    }
    this.counts.steps += 1;
    this.counts.busyS += seconds;
    return seconds;
  }

  finish(now: number): void {
    const ended: RunningRequest[] = [];
    for (const one of this.#running) {
      if (one.scheduled === 0) continue;
      const { request } = one;
      one.computed += one.scheduled;
      this.counts.computedTokens += one.scheduled;
      this.#cacheFull(one);
      if (one.computed < request.promptTokens + one.sampled) continue;
      one.sampled += 1;
      this.counts.sampledTokens += 1;
      if (one.sampled === 1) request.onFirstToken(now);
      if (one.sampled >= request.outputTokens) ended.push(one);
    }
    if (ended.length === 0) return;
    this.#running = this.#running.filter((one) => !ended.includes(one));
    for (const one of ended) {
      this.#pool.release(one.blocks.reverse());
      one.request.onEnd({ now, cachedTokens: one.cachedTokens ?? 0, preemptions: one.preemptions });
    }
  }

  /** Returns the tokens left in the step; -1 if a request was preempted, and then none is admitted. */
  #scheduleRunning(budget: number): number {
    let left = budget;
    let isPreempting = false;
    for (let index = 0; index < this.#running.length && left > 0; index += 1) {
      const one = this.#running[index];
      if (!one) break;
      const tokens = Math.min(left, one.request.promptTokens + one.sampled - one.computed);
      while (this.#missing(one, tokens) > this.#pool.free) {
        const last = this.#running.pop();
        if (!last) break;
        isPreempting = true;
        left += last.scheduled;
        this.#preempt(last);
        if (last === one) return -1;
      }
      this.#allocate(one, tokens);
      one.scheduled = tokens;
      left -= tokens;
    }
    return isPreempting ? -1 : left;
  }

  /** In their order: a request that does not fit holds up those after it. */
  #scheduleWaiting(budget: number): void {
    let left = budget;
    while (left > 0 && this.#running.length < this.shape.maxRunning) {
      const one = this.#waiting[0];
      if (!one) return;
      const total = one.request.promptTokens + one.sampled;
      if (this.#blocked?.one === one && this.#pool.free <= this.#blocked.free) {
        this.#countLookup(one, this.#blocked.found);
        return;
      }
      const found = this.#findPrefix(one, total);
      this.#countLookup(one, found.length);
      const unheld = found.filter((block) => !this.#pool.isHeld(block)).length;
      // The whole prompt must fit, not only its first chunk.
      const isBlocked = this.#blocksOf(total) - found.length > this.#pool.free - unheld;
      this.#blocked = isBlocked ? { one, found: found.length, free: this.#pool.free } : undefined;
      if (isBlocked) return;
      this.#waiting.shift();
      for (const block of found) this.#pool.hold(block);
      one.blocks.push(...found);
      one.computed = found.length * this.shape.blockTokens;
      if (one.cachedTokens === undefined) {
        one.cachedTokens = one.computed;
        this.counts.promptTokens += total;
        this.counts.cachedTokens += one.computed;
      }
      const tokens = Math.min(left, total - one.computed);
      this.#allocate(one, tokens);
      one.scheduled = tokens;
      left -= tokens;
      this.#running.push(one);
    }
  }

  #countLookup({ request, sampled, preemptions }: RunningRequest, foundBlocks: number): void {
    if (preemptions > 0) return;
    this.counts.lookedUpTokens += request.promptTokens + sampled;
    this.counts.foundTokens += foundBlocks * this.shape.blockTokens;
  }

  /** The last token is always computed, because its logits are needed. */
  #findPrefix({ request }: RunningRequest, total: number): number[] {
    const found: number[] = [];
    for (let index = 0; (index + 1) * this.shape.blockTokens < total; index += 1) {
      const block = this.#pool.find(request.blockKey(index));
      if (block === undefined) break;
      found.push(block);
    }
    return found;
  }

  #blocksOf(tokens: number): number {
    return Math.ceil(tokens / this.shape.blockTokens);
  }

  #missing(one: RunningRequest, tokens: number): number {
    return this.#blocksOf(one.computed + tokens) - one.blocks.length;
  }

  #allocate(one: RunningRequest, tokens: number): void {
    for (let count = this.#missing(one, tokens); count > 0; count -= 1) one.blocks.push(this.#pool.take());
  }

  #cacheFull({ request, blocks, computed, scheduled }: RunningRequest): void {
    const { blockTokens } = this.shape;
    for (let index = Math.floor((computed - scheduled) / blockTokens); (index + 1) * blockTokens <= computed; index += 1) {
      const block = blocks[index];
      if (block !== undefined) this.#pool.cache(block, request.blockKey(index));
    }
  }

  /** It starts again from its prompt and what it sampled, before all that wait. */
  #preempt(one: RunningRequest): void {
    this.#pool.release(one.blocks.reverse());
    one.blocks.length = 0;
    one.computed = 0;
    one.scheduled = 0;
    one.preemptions += 1;
    this.counts.preemptions += 1;
    this.#waiting.unshift(one);
  }
}
