// The tree of what a session has seen: prompts, the replies that were sampled from each, and the prompts that continued them. A request
// is matched against it, so that a turn that was sampled here goes back into the context with its own token ids.

import type { Message, ToolSpec } from '@millrace/protocol';
import { isSame, type MessageKey, toKey, toToolsForm } from './message-key.ts';

/** Messages that a client sent together, up to where the policy continues. `P` and `R` are what the owner keeps with them. */
export interface HistoryPrompt<P, R> {
  readonly parent: HistoryReply<P, R> | undefined;
  readonly keys: readonly MessageKey[];
  readonly toolsForm: string;
  readonly replies: HistoryReply<P, R>[];
  readonly value: P;
}

/** One sampled turn. */
export interface HistoryReply<P, R> {
  readonly prompt: HistoryPrompt<P, R>;
  /** As the client may send it back: as it was parsed, and as it was streamed where that differs. */
  readonly keys: readonly MessageKey[];
  readonly children: HistoryPrompt<P, R>[];
  readonly value: R;
}

/** Why a branch was begun. It is a description: nothing depends on it. */
export const branchReasons = [
  'opening',
  're-ask',
  'dropped-reply',
  'edited',
  'compaction',
  'sub-agent',
  'parallel',
  'tools',
  'template',
] as const;
export type BranchReason = (typeof branchReasons)[number];

/** A known turn at a place where it is not in the tree, and the messages that follow it. */
export interface SplicedTurn<P, R> {
  readonly reply: HistoryReply<P, R>;
  readonly messages: readonly Message[];
}

/**
 * How a request continues the tree.
 * - same: exactly a prompt that is known
 * - after: `messages` follow a reply
 * - new: `messages` are an opening of their own; `rendered` are the known turns in it that can only be rendered from their text
 */
export type HistoryMatch<P, R> =
  | { readonly kind: 'same'; readonly prompt: HistoryPrompt<P, R> }
  | (MatchedTurns<P, R> & { readonly kind: 'after'; readonly reply: HistoryReply<P, R> })
  | (MatchedTurns<P, R> & { readonly kind: 'new'; readonly reason: BranchReason; readonly rendered: readonly HistoryReply<P, R>[] });

interface MatchedTurns<P, R> {
  readonly messages: readonly Message[];
  readonly spliced: readonly SplicedTurn<P, R>[];
}

export interface HistoryRequest {
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
}

export class History<P, R> {
  readonly #roots: HistoryPrompt<P, R>[] = [];
  readonly #byCall = new Map<string, HistoryReply<P, R>>();
  readonly #byForm = new Map<string, HistoryReply<P, R>>();

  match({ messages, tools }: HistoryRequest): HistoryMatch<P, R> {
    const keys = messages.map(toKey);
    const toolsForm = toToolsForm(tools);
    const walk = new Walk<P, R>(keys);
    for (const root of this.#roots) if (root.toolsForm === toolsForm) walk.enter(root, 0);
    if (walk.same) return { kind: 'same', prompt: walk.same };
    if (walk.reply) {
      const rest = this.#split(messages, keys, walk.depth);
      if (rest.rendered.length === 0 && !rest.hasForeign)
        return { kind: 'after', reply: walk.reply, messages: rest.messages, spliced: rest.spliced };
    }
    const { hasForeign: _, ...whole } = this.#split(messages, keys, 0);
    return { kind: 'new', ...whole, reason: this.#findReason(keys, toolsForm, walk.isEdited) };
  }

  /** `parent` is absent for an opening. */
  addPrompt(parent: HistoryReply<P, R> | undefined, { messages, tools }: HistoryRequest, value: P): HistoryPrompt<P, R> {
    const prompt: HistoryPrompt<P, R> = { parent, keys: messages.map(toKey), toolsForm: toToolsForm(tools), replies: [], value };
    (parent?.children ?? this.#roots).push(prompt);
    return prompt;
  }

  /** Forgets a prompt that nothing followed. */
  removePrompt(prompt: HistoryPrompt<P, R>): void {
    if (prompt.replies.length > 0) return;
    const siblings = prompt.parent?.children ?? this.#roots;
    const at = siblings.indexOf(prompt);
    if (at >= 0) siblings.splice(at, 1);
  }

  /** `shown`: the turn as the client may send it back, in each of its forms. */
  addReply(prompt: HistoryPrompt<P, R>, shown: readonly Message[], value: R): HistoryReply<P, R> {
    const keys = shown.map(toKey);
    const reply: HistoryReply<P, R> = { prompt, keys, children: [], value };
    const siblings = prompt.parent?.children ?? this.#roots;
    if (!siblings.includes(prompt)) siblings.push(prompt); // it was forgotten while this turn was sampled
    prompt.replies.push(reply);
    for (const { callIds, form } of keys) {
      for (const id of callIds) this.#byCall.set(id, reply);
      this.#byForm.set(form, reply);
    }
    return reply;
  }

  /** Wherever in the tree it was sampled. An empty turn could be any. */
  findReply(key: MessageKey): HistoryReply<P, R> | undefined {
    if (key.role !== 'assistant') return undefined;
    const found = new Set(key.callIds.map((id) => this.#byCall.get(id)));
    const [byCall] = found;
    if (found.size === 1 && byCall?.keys.some((known) => isSame(known, key))) return byCall;
    return key.form === emptyForm ? undefined : this.#byForm.get(key.form);
  }

  /** From `from` on: what must be rendered, and the known turns after it that keep their ids. */
  #split(messages: readonly Message[], keys: readonly MessageKey[], from: number) {
    const turns: { reply: HistoryReply<P, R>; at: number }[] = [];
    const rendered: HistoryReply<P, R>[] = [];
    let hasForeign = false;
    const isTurn = (at: number) => keys[at]?.role === 'assistant';
    for (let at = from; at < keys.length; at += 1) {
      const key = keys[at];
      if (!key || !isTurn(at)) continue;
      const reply = this.findReply(key);
      // A turn keeps its ids where messages stand before and after it, and nothing after it must be rendered with it.
      const isApart = at > from && !isTurn(at - 1) && at + 1 < keys.length && !isTurn(at + 1);
      if (reply && isApart) turns.push({ reply, at });
      else {
        rendered.push(...turns.splice(0).map((turn) => turn.reply), ...(reply ? [reply] : []));
        hasForeign = true;
      }
    }
    const ends = [...turns.map(({ at }) => at), messages.length];
    return {
      messages: messages.slice(from, ends[0]),
      spliced: turns.map(({ reply, at }, index) => ({ reply, messages: messages.slice(at + 1, ends[index + 1]) })),
      rendered,
      hasForeign,
    };
  }

  #findReason(keys: readonly MessageKey[], toolsForm: string, isEdited: boolean): BranchReason {
    if (this.#roots.length === 0) return 'opening';
    if (isEdited) return 'edited';
    const sharing = this.#roots.filter((root) => root.keys.every((key, at) => keys[at] && isSame(key, keys[at])));
    if (sharing.some((root) => root.toolsForm !== toolsForm)) return 'tools';
    const [first] = keys;
    const isKnownStart = this.#roots.some(({ keys: [own] }) => own && first && isSame(own, first));
    return isKnownStart || keys.some((key) => this.findReply(key)) ? 'compaction' : 'sub-agent';
  }
}

const emptyForm = toKey({ role: 'assistant', content: '' }).form;

/** Follows a request through the tree, and remembers how far it got. */
class Walk<P, R> {
  same: HistoryPrompt<P, R> | undefined;
  reply: HistoryReply<P, R> | undefined;
  /** How many messages are in the tree, up to and with `reply`. */
  depth = 0;
  /** Whether a turn stands where another one was sampled. */
  isEdited = false;
  readonly #keys: readonly MessageKey[];

  constructor(keys: readonly MessageKey[]) {
    this.#keys = keys;
  }

  enter(prompt: HistoryPrompt<P, R>, from: number): void {
    const end = from + prompt.keys.length;
    if (end > this.#keys.length || !prompt.keys.every((key, at) => this.#isAt(key, from + at))) return;
    if (end === this.#keys.length) {
      this.same = prompt;
      return;
    }
    const matching = prompt.replies.filter(({ keys }) => keys.some((key) => this.#isAt(key, end)));
    if (matching.length === 0 && prompt.replies.length > 0 && this.#keys[end]?.role === 'assistant') this.isEdited = true;
    for (const reply of matching) {
      if (end + 1 >= this.depth && end + 1 < this.#keys.length) {
        this.reply = reply;
        this.depth = end + 1;
      }
      for (const child of reply.children) this.enter(child, end + 1);
    }
  }

  #isAt(key: MessageKey, at: number): boolean {
    const own = this.#keys[at];
    return own !== undefined && isSame(key, own);
  }
}
