// A turn as its client sees it while it is sampled: reasoning and text as soon as it is certain what they are, each call when it is
// complete. In a format whose calls cannot be recognised from their first characters, everything waits for the end of the turn.

import { isDeepStrictEqual } from 'node:util';
import type { ReplyEvent } from '@millrace/gateway';
import type { ParsedTurn, ReasoningTags, ToolFormat } from '@millrace/model';
import { definedOf, type Message, type ToolCall } from '@millrace/protocol';

interface CallMarks {
  readonly opens: readonly string[];
  /** After it a call can be read; absent if calls are read at the end of the turn only. */
  readonly close?: string;
}

/** How calls begin, in the formats whose text can be streamed. */
const callMarks: Partial<Record<ToolFormat, CallMarks>> = {
  hermes: { opens: ['<tool_call>'], close: '</tool_call>' },
  longcat: { opens: ['<longcat_tool_call>'], close: '</longcat_tool_call>' },
  'qwen3-coder': { opens: ['<tool_call>', '<function='] },
};

interface TurnStreamOptions {
  readonly format: ToolFormat;
  readonly reasoning: ReasoningTags;
  /** Whether the generation prompt has opened the reasoning. */
  readonly isThinking: boolean;
  /** Whether nothing may be shown before the end: a stop string would have to be taken back. */
  readonly isHeld: boolean;
  decode(tokenIds: Int32Array): Promise<string>;
  parse(text: string): ParsedTurn;
  makeCallId(): string;
  emit(event: ReplyEvent): void;
}

type StreamMode = 'text' | 'thought' | 'call';

/** A character has at most four bytes, each of which may be a token. What is still broken after these is not a character. */
const mostBroken = 8;
/** A call whose text has the closing mark more often than this is read at the end of the turn: each try costs its whole text. */
const mostCloses = 4;

export class TurnStream {
  readonly #options: TurnStreamOptions;
  readonly #marks: CallMarks | undefined;
  readonly #ids: number[] = [];
  #prefix = 0;
  #read = 0;
  #mode: StreamMode;
  #pending = '';
  #text = '';
  #reasoning = '';
  /** Whitespace that is shown only if more text follows. */
  readonly #spaces = { text: '', reasoning: '' };
  readonly #calls: ToolCall[] = [];
  /** Where a closing mark is searched next, and how many have been tried for this call. */
  #searched = 0;
  #closes = 0;
  #work: Promise<void> = Promise.resolve();

  constructor(options: TurnStreamOptions) {
    this.#options = options;
    this.#marks = options.isHeld ? undefined : callMarks[options.format];
    this.#mode = options.isThinking ? 'thought' : 'text';
  }

  push(tokenIds: Int32Array): void {
    this.#ids.push(...tokenIds);
    if (this.#marks) this.#work = this.#work.then(() => this.#readNew());
  }

  /** Emits what is left of the turn, and returns it as the client has it: with the ids of its calls. */
  async finish(turn: Pick<Message, 'content' | 'reasoning' | 'tool_calls'>): Promise<Message> {
    await this.#work;
    const { content, reasoning = '', tool_calls = [] } = turn;
    if (this.#text === '' && reasoning.startsWith(this.#reasoning)) this.#emit('reasoning', reasoning.slice(this.#reasoning.length));
    if (content.startsWith(this.#text)) this.#emit('text', content.slice(this.#text.length));
    for (const call of tool_calls.slice(this.#calls.length)) this.#emitCall(call);
    return {
      role: 'assistant',
      content: this.#text,
      ...definedOf({ reasoning: this.#reasoning || undefined, tool_calls: this.#calls.length > 0 ? this.#calls : undefined }),
    };
  }

  /** Decodes with a few tokens before the new ones, so that characters and spaces between tokens are right. */
  async #readNew(): Promise<void> {
    const end = this.#ids.length;
    if (end === this.#read) return;
    const [before, all] = await Promise.all([
      this.#options.decode(Int32Array.from(this.#ids.slice(this.#prefix, this.#read))),
      this.#options.decode(Int32Array.from(this.#ids.slice(this.#prefix, end))),
    ]);
    const isBroken = all.length <= before.length || all.endsWith('\ufffd');
    if (isBroken && end - this.#read < mostBroken) return; // the middle of a character
    this.#prefix = this.#read;
    this.#read = end;
    this.#pending += all.slice(before.length);
    while (this.#step());
  }

  /** False if more text is needed. */
  #step(): boolean {
    const { reasoning } = this.#options;
    const { opens = [] } = this.#marks ?? {};
    if (this.#mode === 'call') return this.#readCall();
    if (this.#mode === 'thought') return this.#readUpTo([reasoning.close], 'reasoning', () => 'text');
    return this.#readUpTo([reasoning.open, ...opens], 'text', (mark) => (mark === reasoning.open ? 'thought' : 'call'));
  }

  #readUpTo(marks: readonly string[], kind: 'text' | 'reasoning', next: (mark: string) => StreamMode): boolean {
    const found = marks
      .map((mark) => ({ mark, at: this.#pending.indexOf(mark) }))
      .filter(({ at }) => at >= 0)
      .sort((a, b) => a.at - b.at)[0];
    const end = found?.at ?? this.#pending.length - longestStart(this.#pending, marks);
    this.#emitTrimmed(kind, this.#pending.slice(0, end));
    this.#pending = this.#pending.slice(end);
    if (!found) return false;
    this.#mode = next(found.mark);
    if (this.#mode !== 'call') this.#pending = this.#pending.slice(found.mark.length);
    return true;
  }

  #readCall(): boolean {
    const close = this.#marks?.close;
    if (close === undefined) return false;
    for (let at = this.#findClose(close); at >= 0; at = this.#findClose(close)) {
      const end = at + close.length;
      this.#searched = end;
      this.#closes += 1;
      const { calls, malformed, content } = this.#options.parse(this.#pending.slice(0, end));
      const [call] = calls;
      if (!call || calls.length > 1 || malformed.length > 0 || content !== '') continue;
      this.#emitCall(call);
      this.#pending = this.#pending.slice(end);
      this.#mode = 'text';
      this.#searched = 0;
      this.#closes = 0;
      return true;
    }
    this.#searched = Math.max(this.#searched, this.#pending.length - close.length + 1);
    return false;
  }

  #findClose(close: string): number {
    return this.#closes < mostCloses ? this.#pending.indexOf(close, this.#searched) : -1;
  }

  /** A turn's text has no outer whitespace: it is held back until more text follows. */
  #emitTrimmed(kind: 'text' | 'reasoning', piece: string): void {
    const sent = kind === 'text' ? this.#text : this.#reasoning;
    const whole = sent === '' ? (this.#spaces[kind] + piece).trimStart() : this.#spaces[kind] + piece;
    const text = whole.trimEnd();
    this.#spaces[kind] = whole.slice(text.length);
    this.#emit(kind, text);
  }

  #emit(kind: 'text' | 'reasoning', text: string): void {
    if (text === '') return;
    if (kind === 'text') this.#text += text;
    else this.#reasoning += text;
    this.#options.emit({ kind, text });
  }

  #emitCall({ name, arguments: args }: ToolCall): void {
    const id = this.#options.makeCallId();
    this.#calls.push({ id, name, arguments: args });
    this.#options.emit({ kind: 'call', id, name });
    this.#options.emit({ kind: 'arguments', text: JSON.stringify(args) });
  }
}

/** Whether what a client was shown is what was parsed in the end. */
export function isShownAs(shown: Message, said: Message): boolean {
  const toCalls = ({ tool_calls = [] }: Message) => tool_calls.map(({ name, arguments: args }) => ({ name, args }));
  return shown.content === said.content && isDeepStrictEqual(toCalls(shown), toCalls(said));
}

/** How many of the last characters may be the start of a mark. */
function longestStart(text: string, marks: readonly string[]): number {
  const most = Math.min(text.length, Math.max(...marks.map(({ length }) => length)) - 1);
  for (let length = most; length > 0; length -= 1) if (marks.some((mark) => mark.startsWith(text.slice(-length)))) return length;
  return 0;
}
