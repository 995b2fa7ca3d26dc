// From the messages of a request to a ledger whose end is its prompt: the line that it continues, or a new one. Known turns are put in
// with their ids; the rest is rendered by the chat template.

import type { Steps } from '@millrace/base/pace';
import { type BranchReason, GatewayError, type History, type HistoryMatch, type HistoryPrompt, type WireRequest } from '@millrace/gateway';
import { appendNext, Ledger, type RenderedMessages, renderResults, toCallId } from '@millrace/model';
import { definedOf, type Message, messageOf, type ToolCall } from '@millrace/protocol';
import type { GatewayBook } from './gateway-book.ts';
import type { GatewayOptions } from './gateway-options.ts';
import { joinSegments, Lineage, type LineagePlace, type LineageTurn, type SessionReply } from './lineage.ts';

type Prompt = HistoryPrompt<LineagePlace, LineageTurn>;
type Match = HistoryMatch<LineagePlace, LineageTurn>;

export interface OpenedPrompt {
  readonly lineage: Lineage;
  readonly prompt: Prompt;
}

interface BuilderOptions extends Pick<GatewayOptions, 'conversation' | 'pace' | 'openSampler'> {
  readonly history: History<LineagePlace, LineageTurn>;
  readonly book: GatewayBook;
}

/** A ledger that is not yet a line's, and what was rendered from text in it. */
interface Draft {
  readonly ledger: Ledger;
  reason: BranchReason;
  readonly from?: LineagePlace;
  rendered: readonly SessionReply[];
  carried: readonly SessionReply[];
}

const noLimits = { max_context_tokens: Number.POSITIVE_INFINITY };

export class PromptBuilder {
  readonly #options: BuilderOptions;
  /** The calls of sampled turns, by the ids that clients have for them. */
  readonly #calls = new Map<string, ToolCall>();

  constructor(options: BuilderOptions) {
    this.#options = options;
  }

  noteCall(clientId: string, call: ToolCall): void {
    this.#calls.set(clientId, call);
  }

  async count(request: WireRequest): Promise<number> {
    return (await this.#draft(request, this.#options.history.match(request))).ledger.length;
  }

  async open(request: WireRequest): Promise<OpenedPrompt> {
    const { history, book } = this.#options;
    const match = history.match(request);
    const ready = this.#findReady(match);
    if (ready && match.kind === 'same') return { lineage: ready, prompt: match.prompt };
    if (ready && match.kind === 'after') {
      const next = await this.#render(renderResults(ready.ledger, this.#options.conversation, this.#toResults(match.messages, request)));
      if (next?.kind === 'delta') {
        appendNext(ready.ledger, this.#options.conversation, next);
        book.noteContext({ carried: pathOf(match.reply), rendered: [] });
        return this.#place(ready, match.reply, { ...request, messages: match.messages });
      }
    }
    const draft = await this.#draft(request, match);
    const lineage = this.#toLineage(draft, request);
    book.noteContext(draft);
    if (match.kind === 'same') return { lineage, prompt: match.prompt };
    const parent = match.kind === 'after' ? match.reply : undefined;
    const depth = parent ? depthOf(parent) : 0;
    return this.#place(lineage, parent, { ...request, messages: request.messages.slice(depth) });
  }

  /** The line that ends where the request continues, if it is free. */
  #findReady(match: Match): Lineage | undefined {
    if (match.kind === 'new' || (match.kind === 'after' && match.spliced.length > 0)) return undefined;
    const node = match.kind === 'same' ? match.prompt : match.reply;
    // A prompt may be the end of a later line than the one that it was rendered in.
    return this.#options.book.lineages.find(({ tip, isBusy }) => tip === node && !isBusy);
  }

  #place(lineage: Lineage, parent: SessionReply | undefined, request: Pick<WireRequest, 'messages' | 'tools'>): OpenedPrompt {
    const prompt = this.#options.history.addPrompt(parent, request, { lineage, segments: lineage.ledger.segments.length });
    return { lineage, prompt };
  }

  async #draft(request: WireRequest, match: Match): Promise<Draft> {
    if (match.kind === 'same') {
      const { lineage, segments } = match.prompt.value;
      const reason = match.prompt.replies.length > 0 || !lineage.isBusy ? 're-ask' : 'parallel';
      return this.#copy(match.prompt.value, { reason, carried: match.prompt.parent ? pathOf(match.prompt.parent) : [], segments });
    }
    if (match.kind === 'new') {
      const ledger = new Ledger();
      const messages = this.#toOwn(match.messages);
      this.#refuseControl(messages);
      ledger.appendPrompt(await this.#render(this.#options.conversation.openingSteps(messages, request.tools)));
      return await this.#splice({ ledger, reason: match.reason, rendered: match.rendered, carried: [] }, match, request);
    }
    const { reply } = match;
    const carried = pathOf(reply);
    const draft = this.#copy(reply.value, { reason: this.#whyAfter(match), carried, segments: reply.value.segments });
    await this.#append(draft, match.messages, request);
    return await this.#splice(draft, match, request);
  }

  #copy(from: LineagePlace, { segments, ...more }: Pick<Draft, 'reason' | 'carried'> & { readonly segments: number }): Draft {
    const ledger = new Ledger();
    ledger.appendPrompt(joinSegments(from.lineage.ledger.segments.slice(0, segments)));
    return { ledger, from, rendered: [], ...more };
  }

  #whyAfter({ reply, messages }: Extract<Match, { kind: 'after' }>): BranchReason {
    if (reply.value.lineage.isBusy) return 'parallel';
    const isDropped = reply.children.some(({ keys, replies }) => replies.length > 0 && keys.length < messages.length);
    return isDropped ? 'dropped-reply' : reply.children.length > 0 ? 'edited' : 're-ask';
  }

  async #splice(draft: Draft, { spliced }: Pick<Extract<Match, { kind: 'new' }>, 'spliced'>, request: WireRequest): Promise<Draft> {
    for (const { reply, messages } of spliced) {
      const { tokenIds, text, message } = reply.value;
      draft.ledger.appendObservation({ tokenIds, text, messages: [message] });
      draft.carried = [...draft.carried, reply];
      await this.#append(draft, messages, request);
    }
    return draft;
  }

  /** Where the template writes the past differently once these messages follow, the whole is rendered again. */
  async #append(draft: Draft, messages: readonly Message[], request: WireRequest): Promise<void> {
    const { conversation } = this.#options;
    const next = await this.#render(renderResults(draft.ledger, conversation, this.#toResults(messages, request)));
    if (!next) throw new GatewayError('invalid', 'the messages cannot be added to the context', 'messages');
    appendNext(draft.ledger, conversation, next);
    if (next.kind === 'delta') return;
    draft.reason = 'template';
    draft.rendered = [...draft.rendered, ...draft.carried];
    draft.carried = [];
  }

  #toLineage({ ledger, reason, from }: Draft, { tools }: WireRequest): Lineage {
    const sampler = this.#options.openSampler();
    const start = ledger.segments.findLastIndex(({ kind }) => kind === 'prompt');
    sampler.ledger.appendPrompt(joinSegments(ledger.segments.slice(start)));
    const isOwn = reason === 'template' || !from;
    const sharedTokens = isOwn ? 0 : (ledger.segments[0]?.tokenIds.length ?? 0);
    const lineage = new Lineage({ sampler, reason, parent: from?.lineage, sharedTokens, tools });
    this.#options.book.lineages.push(lineage);
    return lineage;
  }

  #toResults(messages: readonly Message[], { tools }: WireRequest) {
    return { messages: this.#toOwn(messages), tools, limits: noLimits };
  }

  /** With our ids of calls: a template may write them, and refuse those of clients. */
  #toOwn(messages: readonly Message[]): Message[] {
    const foreign = new Map<string, ToolCall>();
    return messages.map((message) => {
      const { role, tool_calls, tool_call_id = '' } = message;
      if (role === 'tool') {
        const call = this.#calls.get(tool_call_id) ?? foreign.get(tool_call_id);
        return { ...message, ...definedOf({ tool_call_id: call?.id, name: call?.name ?? message.name }) };
      }
      if (!tool_calls) return message;
      const own = tool_calls.map((call, index) => ({ ...call, id: this.#calls.get(call.id)?.id ?? toCallId(index) }));
      for (const [index, call] of own.entries()) foreign.set(tool_calls[index]?.id ?? '', call);
      return { ...message, tool_calls: own };
    });
  }

  /** In an opening, assistant turns are written as the template writes them: a control token in their text would become one. */
  #refuseControl(messages: readonly Message[]): void {
    const { controlTokens } = this.#options.conversation.tokenizer;
    const text = messages.flatMap((message) => (message.role === 'assistant' ? [JSON.stringify(message)] : [])).join('\n');
    const found = controlTokens.find((token) => text.includes(token));
    if (found !== undefined)
      throw new GatewayError('invalid', `a turn of the assistant that was not sampled here spells the control token ${found}`, 'messages');
  }

  async #render<T extends RenderedMessages | { readonly kind: string } | undefined>(steps: Steps<T>): Promise<T> {
    try {
      return await this.#options.pace.run(steps);
    } catch (error) {
      throw new GatewayError('invalid', `the chat template refuses these messages: ${messageOf(error)}`, 'messages');
    }
  }
}

/** The sampled turns up to a reply, oldest first. */
function pathOf(reply: SessionReply): SessionReply[] {
  return [...(reply.prompt.parent ? pathOf(reply.prompt.parent) : []), reply];
}

function depthOf({ prompt }: SessionReply): number {
  return (prompt.parent ? depthOf(prompt.parent) : 0) + prompt.keys.length + 1;
}
