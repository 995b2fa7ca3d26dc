// A turn as its client sees it while it is sampled: reasoning and text as soon as it is certain what they are, calls as soon as their name
// is, and long texts in their arguments as they grow. What a part of the turn does not show for certain waits for its end.

import { isDeepStrictEqual } from 'node:util';
import type { Message, ToolCall, ToolSpec } from '@millrace/protocol';
import { definedOf } from '@millrace/protocol/plain';
import { thinkTags } from '../tool-calls/reasoning.ts';
import type { ToolCallParser } from '../tool-calls/tool-calls.ts';
import { type CallMarks, callMarks, thoughtsOf } from './call-marks.ts';
import { completeJson, findCalls } from './partial-call.ts';

/** The pieces of one part are never mixed with another part. */
export type TurnEvent =
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'call'; readonly id: string; readonly name: string }
  | { readonly kind: 'arguments'; readonly text: string };

interface TurnStreamOptions {
  readonly parser: Pick<ToolCallParser, 'name' | 'reasoning' | 'parse'>;
  readonly tools: readonly ToolSpec[];
  /** The end of the prompt: it may have opened the reasoning. */
  readonly promptEnd: string;
  /** Whether nothing may be shown before the end: a stop string would have to be taken back. */
  readonly isHeld: boolean;
  decode(tokenIds: Int32Array): Promise<string>;
  makeCallId(): string;
  emit(event: TurnEvent): void;
}

/** `rest`: nothing more is shown before the end. */
type StreamMode = 'text' | 'thought' | 'call' | 'rest';

interface ShownCall {
  readonly id: string;
  readonly name: string;
  json: string;
  arguments: Record<string, unknown>;
  isWhole: boolean;
}

/** A character has at most four bytes, each of which may be a token. What is still broken after these is not a character. */
const mostBroken = 8;
/** A call whose text has the closing mark more often than this is read at the end of the turn: each try costs its whole text. */
const mostCloses = 4;
/** The text of calls is read again when it has grown by this many characters, or by an eighth: in all it is read a few times. */
const readEvery = 16;
/** Longer calls are read at the end: reading them would hold up the event loop. */
const longestRead = 1 << 16;

export class TurnStream {
  readonly #options: TurnStreamOptions;
  readonly #marks: CallMarks | undefined;
  readonly #thoughts: NonNullable<CallMarks['thoughts']>;
  readonly #ids: number[] = [];
  #prefix = 0;
  #read = 0;
  #mode: StreamMode;
  #pending: string;
  #text = '';
  #reasoning = '';
  /** Whether a mark that is no content stood after text: more text would be joined to it in another way. */
  #isFramed = false;
  /** Whitespace that is shown only if more text follows. */
  readonly #spaces = { text: '', reasoning: '' };
  readonly #calls: ShownCall[] = [];
  /** How many calls stood before those of `#pending`, and when it is read next. */
  #before = 0;
  #nextRead = 0;
  /** Where a closing mark is searched next, and how many have been tried for this call. */
  #searched = 0;
  #closes = 0;
  #work: Promise<void> = Promise.resolve();

  constructor(options: TurnStreamOptions) {
    this.#options = options;
    const { parser, promptEnd, isHeld } = options;
    this.#marks = isHeld ? undefined : callMarks[parser.name];
    this.#thoughts = thoughtsOf(this.#marks ?? { opens: [] }, parser.reasoning ?? thinkTags);
    this.#mode = this.#thoughts.opens.some((tag) => promptEnd.trimEnd().endsWith(tag)) ? 'thought' : 'text';
    this.#pending = this.#marks?.prefix ?? '';
  }

  push(tokenIds: Int32Array): void {
    this.#ids.push(...tokenIds);
    if (this.#marks) this.#work = this.#work.then(() => this.#readNew());
  }

  /** Emits what is left of the turn, and returns it as the client has it: with the ids of its calls. */
  async finish(turn: Pick<Message, 'content' | 'reasoning' | 'tool_calls'>): Promise<Message> {
    await this.#work;
    const { content, reasoning = '', tool_calls = [] } = turn;
    const open = tool_calls[this.#calls.length - 1];
    if (open) this.#completeLast(open);
    if (this.#text === '' && this.#calls.length === 0 && reasoning.startsWith(this.#reasoning))
      this.#emit('reasoning', reasoning.slice(this.#reasoning.length));
    if (content.startsWith(this.#text)) this.#emit('text', content.slice(this.#text.length));
    for (const call of tool_calls.slice(this.#calls.length)) this.#emitCall(call);
    const calls = this.#calls.map(({ id, name, arguments: args }) => ({ id, name, arguments: args }));
    return {
      role: 'assistant',
      content: this.#text,
      ...definedOf({ reasoning: this.#reasoning || undefined, tool_calls: calls.length > 0 ? calls : undefined }),
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
    const { opens = [], starts = [], frames = [], thinksLater = false } = this.#marks ?? {};
    if (this.#mode === 'rest') return false;
    if (this.#mode === 'call') return this.#readCalls();
    if (this.#mode === 'thought') return this.#readUpTo(this.#thoughts.closes, 'reasoning', () => 'text');
    const thoughts = thinksLater || this.#text === '' ? this.#thoughts.opens : [];
    return this.#readUpTo([...thoughts, ...frames, ...opens, ...starts], 'text', (mark) => {
      if (thoughts.includes(mark)) return 'thought';
      if (frames.includes(mark)) {
        this.#isFramed = this.#text !== '';
        return 'text';
      }
      return opens.includes(mark) || this.#text + this.#spaces.text === '' ? 'call' : 'rest';
    });
  }

  #readUpTo(marks: readonly string[], kind: 'text' | 'reasoning', next: (mark: string) => StreamMode): boolean {
    const found = marks
      .map((mark) => ({ mark, at: this.#pending.indexOf(mark) }))
      .filter(({ at }) => at >= 0)
      .sort((a, b) => a.at - b.at || b.mark.length - a.mark.length)[0];
    // A longer mark may begin where a shorter one is.
    const isOpen = found && longestStart(this.#pending.slice(found.at), marks) === this.#pending.length - found.at;
    const end = found?.at ?? this.#pending.length - longestStart(this.#pending, marks);
    const piece = this.#pending.slice(0, end);
    this.#pending = this.#pending.slice(end);
    if (kind === 'text' && this.#isFramed && piece.trim() !== '') {
      this.#mode = 'rest';
      return false;
    }
    this.#emitTrimmed(kind, piece);
    if (!found || isOpen) return false;
    this.#mode = next(found.mark);
    if (this.#mode !== 'call') this.#pending = this.#pending.slice(found.mark.length);
    else [this.#before, this.#nextRead] = [this.#calls.length, 0];
    return true;
  }

  #readCalls(): boolean {
    if (this.#readClosed()) return true;
    const { length } = this.#pending;
    if (length < this.#nextRead || length > longestRead || !this.#marks) return false;
    this.#nextRead = length + Math.max(readEvery, length >> 3);
    const { parser, tools } = this.#options;
    const { complete, partial } = findCalls(this.#pending, { marks: this.#marks, tools, parse: (text) => parser.parse(text, tools) });
    const known = this.#calls.length - this.#before;
    const open = complete[known - 1];
    if (open) this.#completeLast(open);
    for (const call of complete.slice(Math.max(0, known))) this.#emitCall(call);
    const at = this.#calls.length - this.#before;
    if (partial && (at === complete.length || at === complete.length + 1)) this.#showPart(partial, at === complete.length);
    return false;
  }

  /** True if one call is whole, and the text after it is to be read. */
  #readClosed(): boolean {
    const close = this.#marks?.close;
    if (close === undefined) return false;
    const { parser, tools } = this.#options;
    for (let at = this.#findClose(close); at >= 0; at = this.#findClose(close)) {
      const end = at + close.length;
      this.#searched = end;
      this.#closes += 1;
      const { calls, malformed, content } = parser.parse(this.#pending.slice(0, end), tools);
      const [call] = calls;
      if (!call || calls.length > 1 || malformed.length > 0 || content !== '') continue;
      if (this.#calls.length > this.#before) this.#completeLast(call);
      else this.#emitCall(call);
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
    const json = JSON.stringify(args);
    this.#openCall(name, json);
    this.#options.emit({ kind: 'arguments', text: json });
    Object.assign(this.#calls.at(-1) ?? {}, { arguments: args, isWhole: true });
  }

  #openCall(name: string, json: string): void {
    const id = this.#options.makeCallId();
    this.#calls.push({ id, name, json, arguments: {}, isWhole: false });
    this.#options.emit({ kind: 'call', id, name });
  }

  #showPart({ name, json }: { readonly name: string; readonly json: string }, isNew: boolean): void {
    if (isNew) this.#openCall(name, '');
    const last = this.#calls.at(-1);
    if (!last || last.isWhole || !json.startsWith(last.json)) return; // what differs is put right when it is whole
    const text = json.slice(last.json.length);
    last.json = json;
    if (text !== '') this.#options.emit({ kind: 'arguments', text });
  }

  /** The call that was shown last, with its end. */
  #completeLast({ arguments: args }: ToolCall): void {
    const last = this.#calls.at(-1);
    if (!last || last.isWhole) return;
    const text = completeJson(last.json, args);
    last.json += text;
    last.isWhole = true;
    last.arguments = JSON.parse(last.json);
    if (text !== '') this.#options.emit({ kind: 'arguments', text });
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
  for (let length = most; length > 0; length -= 1)
    if (marks.some((mark) => mark.length > length && mark.startsWith(text.slice(-length)))) return length;
  return 0;
}
