// The work of a chaos run: as long as faults happen, new rollouts and batches are submitted, and what the service acknowledged is
// written down. A call that fails is repeated with the same ids, as a trainer would.

import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@millrace/client';
import { isTerminal, type RolloutState, type SubmissionInput } from '@millrace/protocol';
import { makeShellTask } from './scene/chaos-play.ts';

/** New rollouts are submitted while fewer are live. */
const mostLive = 40;
const atOnce = 8;
/** Every so many runs in a real sandbox. */
const shellEvery = 6;
const openBatches = 3;
/** Numbers of rollouts in batches start here. */
const batchNumbers = 1_000_000;
export const batchTarget = 2;
const batchTasks = 60;
const limits = { max_retries: 100, evaluate_timeout_s: 1.5 };

export class ChaosLoad {
  /** Acknowledged by the service. */
  readonly rollouts = new Set<string>();
  readonly batches = new Set<string>();
  readonly #client: Client;
  readonly #webhook: string;
  #numbers = 0;
  #batchNumbers = 0;

  constructor(client: Client, options: { readonly webhook: string }) {
    this.#client = client;
    this.#webhook = options.webhook;
  }

  /** Until the signal aborts. What was acknowledged until then is still under way. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#submitAll(signal), ...Array.from({ length: openBatches }, () => this.#createAll(signal))]);
  }

  async #submitAll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const live = await repeat(async () => countLive((await this.#client.status()).rollouts), signal);
      if (live === undefined) return;
      if (live < mostLive) await this.#submit(signal);
      await pause(100);
    }
  }

  async #submit(signal: AbortSignal): Promise<void> {
    const submissions = Array.from({ length: atOnce }, () => makeSubmission(this.#numbers++));
    const accepted = await repeat(() => this.#client.submit(submissions), signal);
    for (const { id } of accepted ?? []) this.rollouts.add(id);
  }

  async #createAll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const id = `chaos-batch-${this.#batchNumbers++}`;
      const first = batchNumbers + this.#batchNumbers * batchTasks;
      const created = await repeat(() => this.#client.batches.create(this.#makeBatch(id, first)), signal);
      if (!created) return;
      this.batches.add(id);
      await this.#watch(id, signal);
    }
  }

  #makeBatch(id: string, first: number): Parameters<Client['batches']['create']>[0] {
    const tasks = Array.from({ length: batchTasks }, (_, index) => ({ number: first + index }));
    const size = { group_size: 3, target: batchTarget, max_replacements: 1000 };
    const webhook = { url: this.#webhook };
    return { id, scenario: 'chaos-play', ...size, tasks, informative: { rule: 'any' }, webhook, limits };
  }

  async #watch(id: string, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const batch = await repeat(() => this.#client.batches.get(id), signal);
      if (batch?.state !== 'open') return;
      await pause(300);
    }
  }
}

function makeSubmission(number: number): SubmissionInput {
  const id = `chaos-${number}`;
  if (number % shellEvery > 0) return { id, scenario: 'chaos-play', task: { number }, limits };
  return { id, scenario: 'shell', task: makeShellTask(number), limits: { max_retries: 100 } };
}

/** Undefined if the signal aborts first. */
async function repeat<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  while (!signal.aborted) {
    try {
      return await call();
    } catch {} // a fault is under way
    await pause(200);
  }
  return undefined;
}

export function countLive(counts: Readonly<Record<RolloutState, number>>): number {
  return Object.entries(counts).reduce((sum, [state, count]) => sum + (isTerminal(state as RolloutState) ? 0 : count), 0);
}
