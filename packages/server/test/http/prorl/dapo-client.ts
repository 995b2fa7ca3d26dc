// The DAPO flow of ProRL Agent's verl client, written from what it does on the wire: it starts the server, keeps every worker busy, refills
// when its queue is empty, drops groups that are all right or all wrong, cancels the rest when it has enough groups, puts unfinished
// prompts back, and stops the server.

import { setTimeout as pause } from 'node:timers/promises';
import { post, type Result } from './verl-client.ts';

export interface DapoOptions {
  readonly url: string;
  readonly samplingParams: Readonly<Record<string, unknown>>;
  /** Siblings of a prompt. */
  readonly trajectories: number;
  /** How many informative groups make a batch. */
  readonly batchSize: number;
  /** How many jobs it keeps in flight. */
  readonly workers: number;
  /** The next prompts of the data loader. */
  nextPrompts(): readonly Readonly<Record<string, unknown>>[];
}

interface QueuedJob {
  readonly instance: Record<string, unknown>;
  readonly attempt: number;
}

export class DapoClient {
  readonly #options: DapoOptions;
  #prompts = new Map<string, Record<string, unknown>>();
  #queue: QueuedJob[] = [];
  #jobs = 0;
  readonly counts = { refills: 0, filtered: 0, cancelled: 0, retries: 0, posts: 0 };

  constructor(options: DapoOptions) {
    this.#options = options;
  }

  /** One batch: the results of each informative group. `onResult` is called for every result that came. */
  async sampleBatch(onResult: (count: number) => Promise<void> = async () => {}): Promise<Map<string, Result[]>> {
    const { url, batchSize, trajectories } = this.#options;
    await expect(post(`${url}/start`));
    const groups = new Map<string, Map<number, Result>>();
    const dropped = new Set<string>();
    const stop = new AbortController();
    let count = 0;
    const whole = () => [...groups.values()].filter(({ size }) => size === trajectories).length;
    const work = async () => {
      while (!stop.signal.aborted) {
        const job = this.#nextJob();
        const result = await this.#runJob(job, stop.signal);
        if (result === undefined || stop.signal.aborted) continue;
        const id = String(job.instance.instance_id);
        const group = groups.get(id) ?? new Map<number, Result>();
        groups.set(id, group.set(Number(job.instance.trajectory_id), result));
        const solved = [...group.values()].filter(({ resolved }) => resolved).length;
        if (group.size === trajectories && (solved === 0 || solved === trajectories)) {
          groups.delete(id);
          dropped.add(id);
          this.counts.filtered += 1;
        }
        await onResult(++count);
        if (whole() >= batchSize) stop.abort();
      }
    };
    await Promise.all(Array.from({ length: this.#options.workers }, work));
    const kept = [...groups].filter(([, group]) => group.size === trajectories).slice(0, batchSize);
    this.#putBack(new Set([...dropped, ...kept.map(([id]) => id)]));
    await expect(post(`${url}/stop`));
    return new Map(kept.map(([id, group]) => [id, [...group.values()]]));
  }

  #nextJob(): QueuedJob {
    if (this.#queue.length === 0) {
      this.counts.refills += 1;
      for (const prompt of this.#options.nextPrompts()) this.#enqueue({ ...prompt });
    }
    const job = this.#queue.shift();
    if (!job) throw new Error('the data loader is empty');
    return job;
  }

  #enqueue(prompt: Record<string, unknown>): void {
    this.#prompts.set(String(prompt.instance_id), prompt);
    for (let trajectory_id = 0; trajectory_id < this.#options.trajectories; trajectory_id += 1)
      this.#queue.push({ instance: { ...prompt, trajectory_id }, attempt: 0 });
  }

  /** Unfinished prompts are sampled again as a whole: their finished siblings are thrown away. */
  #putBack(done: ReadonlySet<string>): void {
    const left = [...this.#prompts].filter(([id]) => !done.has(id)).map(([, prompt]) => prompt);
    this.#queue = [];
    this.#prompts = new Map();
    for (const prompt of left) this.#enqueue(prompt);
  }

  /** Undefined for a job that is cancelled or tried again. An answer without messages, or with an error, is tried at most three times. */
  async #runJob({ instance, attempt }: QueuedJob, signal: AbortSignal): Promise<Result | undefined> {
    const { url, samplingParams } = this.#options;
    this.#jobs += 1;
    const jobId = `${instance.instance_id}_${instance.trajectory_id}_${this.#jobs.toString(16).padStart(8, '0')}`;
    this.counts.posts += 1;
    try {
      const body = { job_id: jobId, instance, sampling_params: samplingParams };
      const reply = await post(`${url}/process`, body, signal);
      if (reply.status === 200 && reply.body.messages.length > 0) return reply.body;
    } catch (error) {
      if (!signal.aborted) throw error;
      this.counts.cancelled += 1;
      await expect(post(`${url}/cancel`, { job_id: jobId }));
      return undefined;
    }
    if (attempt >= 2) return { messages: [], resolved: false, finish: false, success: false, error: 'Empty response' };
    this.counts.retries += 1;
    this.#queue.push({ instance, attempt: attempt + 1 });
    await pause(10);
    return undefined;
  }
}

async function expect(reply: ReturnType<typeof post>): Promise<void> {
  const { status, body } = await reply;
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`);
}
