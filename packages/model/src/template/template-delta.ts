// What a template writes after an assistant's turn. For each shape of messages it is rendered after two different made-up pasts. What is the
// same after both is used after any past. Anything else is rendered after the real past, or makes the past itself be rendered again.

import type { Message } from '@millrace/protocol';
import { messageOf } from '@millrace/protocol';
import type { TextPart } from '../tokenizer/added-tokens.ts';
import { guardIds, idsOf, splitIds } from './template-ids.ts';
import {
  answer,
  longPasts,
  type Past,
  shortPast,
  systemPast,
  withAnswer,
  withCalls,
  withoutThoughts,
  withText,
  words,
} from './template-pasts.ts';
import { cacheShapes, fillSkeleton, findLost, type Skeleton } from './template-skeleton.ts';
import type { Render, TurnEnds } from './turn-ends.ts';
import { commonHead } from './written-turn.ts';

/** The template does not accept such messages at all. */
export class Unsupported extends Error {}
/** What the template writes for such messages depends on what was before them. */
export class DependsOnPast extends Error {}

interface DeltaOptions {
  readonly render: Render;
  readonly ends: TurnEnds;
  readonly name: string;
  /** What else the rendering depends on, such as the time. */
  readonly variant?: () => number;
}

export interface DeltaRenderer {
  /**
   * After a turn with text, or with the calls that are answered, and text before them if `hasText`. Throws `DependsOnPast` if it is not the
   * same after every past, and `Unsupported` if the template refuses such messages.
   */
  afterAny(newMessages: readonly Message[], hasText?: boolean): TextPart[];
  /** After a question and an answer. */
  afterShort(newMessages: readonly Message[]): TextPart[];
  /** After this past, whether the template then writes it differently or not; after another turn if it drops what follows this one. */
  afterPast(newMessages: readonly Message[], past: Past): TextPart[];
  /** Whether the template writes the past as it did before the new messages came. */
  isPastKept(newMessages: readonly Message[], past: Past): boolean;
}

/** A delta, and the messages of its past, whose placeholders come before those of the new messages. */
interface Delta {
  readonly skeleton: Skeleton;
  readonly past: readonly Message[];
}

export function makeDeltaRenderer(options: DeltaOptions): DeltaRenderer {
  const { render, name, variant } = options;
  const isTaken = (past: Past) => doesRender(() => render(past.messages, past.tools));
  const pasts = [shortPast, ...[systemPast].filter(isTaken), longPasts.find(isTaken) ?? shortPast];
  const makeShapes = (hasText: boolean) =>
    cacheShapes((newMessages): Delta => {
      const deltas = pasts.map((past) => {
        const delta = renderAfter(options, candidatesOf(past, newMessages, hasText), newMessages);
        return { delta, text: JSON.stringify(fill(delta, newMessages)) };
      });
      const [first, other] = [deltas[0], deltas.find(({ text }) => text !== deltas[0]?.text)];
      if (!first) throw new Unsupported(`${name} has no past`);
      const roles = newMessages.map(({ role }) => role).join(', ');
      if (other) throw dependsOnPast(name, `after two different pasts, it renders ${roles} as ${first.text} and as ${other.text}`);
      return first.delta;
    }, variant);
  const [plainShapes, textShapes] = [makeShapes(false), makeShapes(true)];
  const shortShapes = cacheShapes(
    (newMessages) => renderAfter(options, candidatesOf(shortPast, newMessages, false), newMessages, true),
    variant,
  );
  const toReal = (newMessages: readonly Message[], past: Past) => withAnswer(past, newMessages.slice(0, countResults(newMessages)));
  return {
    afterAny: (newMessages, hasText = false) => fill((hasText ? textShapes : plainShapes)(newMessages), newMessages),
    afterShort: (newMessages) => fill(shortShapes(newMessages), newMessages),
    afterPast(newMessages, past) {
      const candidates = [toReal(newMessages, past), withText(past), shortPast];
      return fill(renderAfter(options, candidates, newMessages, true), newMessages);
    },
    isPastKept(newMessages, past) {
      const real = toReal(newMessages, past);
      return isKept(options, doesRender(() => renderAfterExactly(options, real, newMessages)) ? real : withText(past), newMessages);
    },
  };
}

function fill({ skeleton, past }: Delta, newMessages: readonly Message[]): TextPart[] {
  return fillSkeleton(skeleton, [...past, ...newMessages], idsOf(newMessages));
}

/** After calls if results come first: of all the tools, or of one where the template takes only one call a turn; otherwise after text. */
function candidatesOf(past: Past, newMessages: readonly Message[], hasText: boolean): readonly Past[] {
  const results = newMessages.slice(0, countResults(newMessages));
  if (results.length === 0) return [withText(past)];
  const content = hasText ? words : '';
  return [withCalls(past, results, { content }), withCalls(past, results, { content, count: 1 }), past];
}

/** `anyway`: whether the template may write the past differently. */
function renderAfter(options: DeltaOptions, candidates: readonly Past[], newMessages: readonly Message[], anyway = false): Delta {
  let failure: unknown;
  for (const candidate of candidates) {
    try {
      const delta = renderAfterExactly(options, candidate, newMessages);
      if (anyway || isKept(options, candidate, newMessages)) return delta;
    } catch (error) {
      failure ??= error;
      continue;
    }
    throw dependsOnPast(options.name, 'it writes what is before a message differently once the message is there');
  }
  throw failure;
}

function countResults(messages: readonly Message[]): number {
  const other = messages.findIndex(({ role }) => role !== 'tool');
  return other < 0 ? messages.length : other;
}

function renderAfterExactly({ render, ends, name }: DeltaOptions, past: Past, newMessages: readonly Message[]): Delta {
  const messages = [...past.messages, ...newMessages];
  const ids = idsOf(newMessages);
  const whole = attempt(name, () => render(guardIds(messages, ids), past.tools));
  const [lost] = findLost(whole, messages, past.messages.length);
  if (lost)
    throw new Unsupported(`${name} cannot be continued exactly: it does not write the content of a ${lost.role} message exactly once`);
  const closing = ends.isShared ? closingOf(render, past, ids) : undefined;
  const delta = cutDelta(whole, { ends, closing });
  const roles = newMessages.map(({ role }) => role).join(', ');
  if (!delta) throw dependsOnPast(name, `the turn before ${roles} does not end with ${ends.all.join(' or ')}`);
  const skeleton = splitIds(delta, ids);
  if (!skeleton) throw new Unsupported(`${name} cannot be continued exactly: it does not write the id of a call as it is`);
  return { skeleton: skeleton.map((piece) => ('text' in piece ? { text: piece.text.replaceAll(words, '') } : piece)), past: past.messages };
}

/**
 * Whether everything up to the generation prompt of the last turn is still there when the new messages have come, except reasoning. The
 * turn itself may be written otherwise, for example without an empty thought that the model wrote.
 */
function isKept({ render, ends, name }: DeltaOptions, thoughtful: Past, newMessages: readonly Message[]): boolean {
  const past = withoutThoughts(thoughtful);
  const ids = idsOf(newMessages);
  const after = attempt(name, () => render(guardIds([...past.messages, ...newMessages], ids), past.tools));
  const closing = ends.isShared ? closingOf(render, past, ids) : undefined;
  const delta = cutDelta(after, { ends, closing });
  if (!delta || delta.some((piece) => 'text' in piece && piece.text.includes(words))) return false;
  const prompt = findPrompt(render, past);
  if (!prompt) return true;
  const at = prompt.findLastIndex((piece) => !('text' in piece));
  if (JSON.stringify(prompt.slice(0, at + 1)) !== JSON.stringify(after.slice(0, at + 1))) return false;
  const [was, is] = [textAt(prompt, at + 1), textAt(after, at + 1)];
  return was === '' || commonHead(was, is) !== '';
}

/** What the policy saw before the last turn; undefined if the template refuses it. */
function findPrompt(render: Render, { messages, tools }: Past): Skeleton | undefined {
  try {
    return render(messages.slice(0, -1), tools, true);
  } catch {
    return undefined; // some templates want a user message first
  }
}

/** What the template writes after `answer` when the conversation ends there. */
function closingOf(render: Render, past: Past, ids: readonly string[]): string {
  const skeleton = render(guardIds(past.messages, ids), past.tools, false);
  const text = textAt(skeleton, findAnswer(skeleton));
  return text.slice(text.lastIndexOf(answer) + answer.length).trimEnd();
}

/** What follows the end of the turn with the last `answer`. */
function cutDelta(skeleton: Skeleton, { ends, closing }: { ends: TurnEnds; closing: string | undefined }): Skeleton | undefined {
  const at = findAnswer(skeleton);
  if (at < 0) return undefined;
  const text = textAt(skeleton, at);
  const from = text.lastIndexOf(answer);
  const start = from + answer.length;
  if (closing !== undefined && text.startsWith(closing, start)) {
    return [{ text: text.slice(start + closing.length) }, ...skeleton.slice(at + 1)];
  }
  const found = ends.all.map((end) => ({ end, place: text.indexOf(end, from) })).filter(({ place }) => place >= 0);
  const [first] = found.sort((a, b) => a.place - b.place);
  if (!first) return undefined;
  return [{ text: text.slice(first.place + first.end.length) }, ...skeleton.slice(at + 1)];
}

function findAnswer(skeleton: Skeleton): number {
  return skeleton.findLastIndex((piece) => 'text' in piece && piece.text.includes(answer));
}

function textAt(skeleton: Skeleton, at: number): string {
  const piece = skeleton[at];
  return piece && 'text' in piece ? piece.text : '';
}

export function attempt<T>(name: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new Unsupported(`${name} cannot be continued exactly: ${messageOf(error)}`);
  }
}

export function doesRender(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch {
    return false; // this is what the caller wants to know
  }
}

export function notContinuable(name: string, why: string): Error {
  return new Error(`${name} cannot be continued exactly: ${why}`);
}

function dependsOnPast(name: string, why: string): DependsOnPast {
  return new DependsOnPast(`${name} cannot be continued exactly: ${why}`);
}
