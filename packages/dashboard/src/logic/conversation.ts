// A trajectory as a person reads it: one entry for each message, in order, with the turn and the segment that it is from.

import type { Message } from '@millrace/protocol';
import { listBranches, type SegmentView } from './tokens.ts';

export interface ConversationEntry {
  readonly message: Message;
  readonly turn: number;
  readonly segment: number;
  /** For the first message of its segment. */
  readonly facts?: Pick<SegmentView, 'backend' | 'policy_versions' | 'finish_reason' | 'retries'> & { readonly tokens: number };
}

export function toConversation(segments: readonly SegmentView[], branch = 0): ConversationEntry[] {
  return (listBranches(segments).get(branch) ?? []).flatMap((index) => {
    const segment = segments[index];
    if (segment === undefined) return [];
    const { backend, policy_versions, finish_reason, retries } = segment;
    const given = { backend, policy_versions, finish_reason, retries, tokens: segment.token_ids.length };
    const facts = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as ConversationEntry['facts'];
    return segment.messages.map((message, at) => ({
      message,
      turn: segment.turn,
      segment: index,
      ...(at === 0 && facts !== undefined ? { facts } : {}),
    }));
  });
}

/** An argument of a tool call as it is read best: text as it is, anything else as JSON. */
export function toArgumentText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 2);
}
