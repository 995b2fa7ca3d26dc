// A gateway from its first request to its reward. One that no client uses is given up, and a worker that is not the first cannot
// continue it, because its tokens are in the memory of the one that was lost.

import { createHash } from 'node:crypto';
import type { Clock } from '@millrace/base/clock';
import { RolloutError } from '@millrace/protocol';
import type { GatewayOutcome, GatewayTask } from '@millrace/scenarios';
import type { GatewayHost, GatewayVerdict } from './gateway-host.ts';
import type { GatewayOptions } from './gateway-options.ts';
import { GatewaySession } from './gateway-session.ts';

interface GatewayRun {
  readonly id: string;
  readonly attempt: number;
  readonly model: string;
  readonly task: GatewayTask;
  readonly host: GatewayHost;
  readonly outcome: GatewayOutcome;
  /** Receives the session when it is open. */
  onSession(session: GatewaySession): void;
  readonly options: Omit<GatewayOptions, 'allow'>;
}

/** Returns the text of the last turn. Throws if the gateway ends without a reward. */
export async function runGateway({ id, attempt, model, task, host, outcome, onSession, options }: GatewayRun): Promise<string> {
  if (attempt > 1)
    throw new RolloutError('worker-lost', `the worker that held gateway ${id} was lost, and the tokens of its turns with it`);
  const closing = new AbortController();
  const signal = AbortSignal.any([options.signal, closing.signal]);
  using session = new GatewaySession({ ...options, allow: task.allow, signal });
  onSession(session);
  const verdict = Promise.withResolvers<GatewayVerdict>();
  using idle = new IdleWatch(task.idle_timeout_s * 1000, options.clock, (seconds) =>
    verdict.reject(new RolloutError('gateway-abandoned', `no request and no reward for ${seconds} s`)),
  );
  const abort = () => verdict.reject(options.signal.reason);
  options.signal.addEventListener('abort', abort, { once: true });
  if (options.signal.aborted) abort();
  using _hosted = host.add(id, {
    session,
    model,
    keyDigest: task.key_sha256,
    controlDigest: toSecretDigest(task.control),
    noteRequest: (change) => idle.note(change),
    end: (given) => verdict.resolve(given),
  });
  try {
    const given = await verdict.promise;
    if (given.kind === 'discard') throw new RolloutError('cancelled', `its caller discarded it: ${given.reason}`);
    outcome.reward = given.reward;
    outcome.score = given.score;
  } finally {
    options.signal.removeEventListener('abort', abort);
    closing.abort(new RolloutError('gone', `gateway ${id} has ended`));
    await session.ended();
    outcome.tools = session.book.branches[0]?.tools ?? [];
    outcome.report = session.book.toReport(task.reward_rule, outcome.reward ?? null);
  }
  return session.book.ledger.messages.findLast(({ role }) => role === 'assistant')?.content ?? '';
}

/** Calls back when no request was open for this long. */
class IdleWatch implements Disposable {
  readonly #ms: number;
  readonly #clock: Clock;
  readonly #expire: (seconds: number) => void;
  #open = 0;
  #stop = () => {};

  constructor(ms: number, clock: Clock, expire: (seconds: number) => void) {
    this.#ms = ms;
    this.#clock = clock;
    this.#expire = expire;
    this.note(0);
  }

  note(change: 1 | -1 | 0): void {
    this.#open += change;
    this.#stop();
    if (this.#open === 0) this.#stop = this.#clock.after(this.#ms, () => this.#expire(this.#ms / 1000));
  }

  [Symbol.dispose](): void {
    this.#stop();
  }
}

export function toSecretDigest(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}
