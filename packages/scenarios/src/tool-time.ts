// What a scenario's own code gets when the agent is running: the sandbox, if there is one, and a limited time.

import { Deadline } from '@millrace/base/deadline';
import { raceSignal } from '@millrace/base/race';
import { OwnClock, type Sandbox } from '@millrace/sandbox';
import type { CustomToolContext } from './custom-tool.ts';

export interface CallTime {
  /** For the message of the error. */
  readonly what: string;
  readonly timeoutMs: number;
  /** Its programs are charged for their own time only. */
  readonly sandbox?: Sandbox | undefined;
  readonly signal: AbortSignal;
}

/** Throws the signal's reason, or an `Expired` when the time is up, even if the work ignores its signal. */
export async function withinTime<T>({ what, timeoutMs, sandbox, signal }: CallTime, work: (within: AbortSignal) => Promise<T>): Promise<T> {
  const clock = new OwnClock();
  if (sandbox) clock.watch(sandbox);
  using deadline = new Deadline(what, timeoutMs, clock);
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
