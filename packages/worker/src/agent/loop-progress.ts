// Where the turn loop is between two turns: with the ledger and the tally, all that it needs to go on in another process.

import type { Sampling, ToolCall } from '@millrace/protocol';

export interface LoopProgress {
  lastText: string;
  malformedTurns: number;
  /** The number of turns at the last compaction: it is not tried again before the next turn. */
  compactedAt: number;
  /** The calls of the last turn, and how many turns in a row have made them. */
  lastCalls: Pick<ToolCall, 'name' | 'arguments'>[];
  repeats: number;
  /** How the next turn is sampled, and what the agent's message has already. */
  plan: { readonly sampling: Sampling; readonly openText: string };
}
