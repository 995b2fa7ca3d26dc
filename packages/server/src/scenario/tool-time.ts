// What a scenario's own code gets when the agent is running: the sandbox, if there is one, and a limited time.

import { systemClock } from '../base/clock.ts';
import { Deadline } from '../base/deadline.ts';
import { raceSignal } from '../base/race.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { CustomToolContext } from './custom-tool.ts';

export interface CallTime {
  /** For the message of the error. */
  readonly what: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Throws the signal's reason, or an `Expired` when the time is up, even if the work ignores its signal. */
export async function withinTime<T>({ what, timeoutMs, signal }: CallTime, work: (within: AbortSignal) => Promise<T>): Promise<T> {
  using deadline = new Deadline(what, timeoutMs, systemClock);
  const within = AbortSignal.any([signal, deadline.signal]);
  return await raceSignal(work(within), within);
}

export function toContext(what: string, rest: Omit<CustomToolContext, 'sandbox'>, sandbox: Sandbox | undefined): CustomToolContext {
  return {
    ...rest,
    get sandbox() {
      if (!sandbox) throw new Error(`${what} uses a sandbox, but the scenario has no \`sandbox\` function`);
      return sandbox;
    },
  };
}
