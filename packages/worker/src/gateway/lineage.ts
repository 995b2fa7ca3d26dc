// One line of a session's history: a ledger, the sampler that continues it, and how it began. A new line starts with a copy of the ids
// that it shares with another one, as a prompt: they are trained where they were sampled.

import type { BranchReason, HistoryReply } from '@millrace/gateway';
import type { Rendered } from '@millrace/model';
import type { Message, Segment, ToolSpec } from '@millrace/protocol';
import type { Sampler } from '../inference/sampler.ts';

export class Lineage {
  readonly sampler: Sampler;
  readonly reason: BranchReason;
  /** The line whose ids it begins with; undefined if it has an opening of its own. */
  readonly parent: Lineage | undefined;
  readonly sharedTokens: number;
  readonly tools: readonly ToolSpec[];
  /** A request is being answered. */
  isBusy = false;
  /** The prompt or reply at the end of the ledger; undefined if a turn was broken off there. */
  tip: unknown;
  /** Counts the turns of the session: the order in which lines sampled. */
  lastTurn = 0;

  constructor(facts: Pick<Lineage, 'sampler' | 'reason' | 'parent' | 'sharedTokens' | 'tools'>) {
    this.sampler = facts.sampler;
    this.reason = facts.reason;
    this.parent = facts.parent;
    this.sharedTokens = facts.sharedTokens;
    this.tools = facts.tools;
  }

  get ledger() {
    return this.sampler.ledger;
  }

  get sampledTokens(): number {
    return this.ledger.counts.sampled;
  }
}

/** A place in a line's ledger: after this many segments. */
export interface LineagePlace {
  readonly lineage: Lineage;
  readonly segments: number;
}

/** A sampled turn in a line. */
export interface LineageTurn extends LineagePlace {
  readonly message: Message;
  readonly tokenIds: Int32Array;
  readonly text: string;
}

/** A reply in the tree of a session. */
export type SessionReply = HistoryReply<LineagePlace, LineageTurn>;

/** Everything up to a place, as one prompt. */
export function joinSegments(segments: readonly Segment[]): Rendered {
  const tokenIds = new Int32Array(segments.reduce((sum, segment) => sum + segment.tokenIds.length, 0));
  let at = 0;
  for (const segment of segments) {
    tokenIds.set(segment.tokenIds, at);
    at += segment.tokenIds.length;
  }
  return { tokenIds, text: segments.map(({ text }) => text).join(''), messages: segments.flatMap(({ messages }) => messages) };
}
