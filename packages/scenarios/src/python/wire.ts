// What crosses the connection between a worker and the process of a scenario in Python: JSON lines in both directions. The process holds
// the user's own code, so what it sends is checked.

import { z } from 'zod';
import { scenarioBlames } from '../scenario-error.ts';

/** The functions of a scenario that a worker calls. `respond` gives a turn of the agent to `run`. */
export type PythonFunction = 'sandbox' | 'prepare_key' | 'prepare' | 'init' | 'tool' | 'respond' | 'compact' | 'collect' | 'evaluate';

export type ToPython =
  | {
      readonly type: 'call';
      readonly id: number;
      readonly function: PythonFunction;
      readonly rollout?: number;
      readonly context: Readonly<Record<string, unknown>>;
    }
  | { readonly type: 'cancel'; readonly id: number }
  | { readonly type: 'close'; readonly rollout: number }
  | { readonly type: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly type: 'answer'; readonly id: number; readonly error: { readonly code: string; readonly message: string } }
  | { readonly type: 'ping' };

const pythonFailure = z.object({
  /** `scenario`: the file is not a scenario, and the message says what to write. */
  kind: z.enum(['error', 'cancelled', 'scenario']),
  type: z.string(),
  message: z.string(),
  /** File and line of the scenario. */
  place: z.string().optional(),
  stack: z.string(),
  blame: z.enum(scenarioBlames).optional(),
  /** The request that failed, if the exception is its error. */
  ask: z.int().optional(),
});
export type PythonFailure = z.infer<typeof pythonFailure>;

const pythonDescription = z.object({
  name: z.string().min(1).max(128),
  aliases: z.array(z.string()),
  task: z.record(z.string(), z.unknown()),
  has: z.array(z.string()),
  reward_range: z.tuple([z.number(), z.number()]),
});
export type PythonDescription = z.infer<typeof pythonDescription>;

export const fromPython = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready'), scenario: pythonDescription }),
  z.object({ type: z.literal('refused'), error: pythonFailure }),
  z.object({ type: z.literal('return'), id: z.int(), value: z.unknown() }),
  z.object({ type: z.literal('raise'), id: z.int(), error: pythonFailure }),
  z.object({ type: z.literal('ask'), id: z.int(), call: z.int(), method: z.string(), args: z.record(z.string(), z.unknown()) }),
  z.object({ type: z.literal('pong') }),
]);
export type FromPython = z.infer<typeof fromPython>;

/** An exception of a scenario in Python. Its stack is the one of Python. */
export class PythonError extends Error {
  readonly place: string | undefined;

  constructor({ type, message, place, stack }: PythonFailure) {
    super(message);
    this.name = type;
    this.place = place;
    this.stack = stack;
  }
}
