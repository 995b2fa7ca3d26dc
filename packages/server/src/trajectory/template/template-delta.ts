// What a template writes after an assistant's turn. For each shape of messages it is rendered after two different pasts and must be the
// same after both. Results follow a turn that called the same tools, because some templates write them only then.

import type { Message } from '@millrace/protocol';
import { messageOf } from '@millrace/protocol';
import { answer, longPasts, type Past, shortPast, withCalls } from './template-pasts.ts';
import { fillSkeleton, findLost, type Skeleton } from './template-skeleton.ts';
import type { Render, TurnEnds } from './turn-ends.ts';

/** The template does not accept such messages at all. */
export class Unsupported extends Error {}

export interface DeltaOptions {
  readonly render: Render;
  readonly ends: TurnEnds;
  readonly name: string;
}

/** A delta, and how many placeholders of its past come before those of the new messages. */
export interface Delta {
  readonly skeleton: Skeleton;
  readonly past: readonly Message[];
}

export function makeDeltaRenderer(options: DeltaOptions): (newMessages: readonly Message[]) => Delta {
  const { render, name } = options;
  const longPast = longPasts.find((past) => doesRender(() => render(past.messages, past.tools))) ?? shortPast;
  return (newMessages) => {
    const [short, long] = [shortPast, longPast].map((past) => renderAfter(options, past, newMessages));
    if (!short || !long) throw new Unsupported(`${name} has no past`);
    const [one, two] = [short, long].map(({ skeleton, past }) => JSON.stringify(fillSkeleton(skeleton, [...past, ...newMessages])));
    const roles = newMessages.map(({ role }) => role).join(', ');
    if (one !== two) throw notContinuable(name, `after two different pasts, it renders ${roles} as ${one} and as ${two}`);
    return short;
  };
}

/** After calls if results come first: of all the tools, or of one where the template takes only one call a turn; otherwise after text. */
function renderAfter(options: DeltaOptions, past: Past, newMessages: readonly Message[]): Delta {
  const results = newMessages.slice(0, countResults(newMessages));
  const candidates = results.length === 0 ? [past] : [withCalls(past, results), withCalls(past, results, 1), past];
  let failure: unknown;
  for (const candidate of candidates) {
    try {
      return renderAfterExactly(options, candidate, newMessages);
    } catch (error) {
      failure ??= error;
    }
  }
  throw failure;
}

function countResults(messages: readonly Message[]): number {
  const other = messages.findIndex(({ role }) => role !== 'tool');
  return other < 0 ? messages.length : other;
}

function renderAfterExactly({ render, ends, name }: DeltaOptions, past: Past, newMessages: readonly Message[]): Delta {
  const messages = [...past.messages, ...newMessages];
  const whole = attempt(name, () => render(messages, past.tools));
  const [lost] = findLost(whole, messages, past.messages.length);
  if (lost)
    throw new Unsupported(`${name} cannot be continued exactly: it does not write the content of a ${lost.role} message exactly once`);
  const closing = ends.isShared ? closingOf(render, past) : undefined;
  const skeleton = cutDelta(whole, { ends, closing });
  const roles = newMessages.map(({ role }) => role).join(', ');
  if (!skeleton) throw notContinuable(name, `the turn before ${roles} does not end with ${ends.all.join(' or ')}`);
  return { skeleton, past: past.messages };
}

/** What the template writes after `answer` when the conversation ends there. */
function closingOf(render: Render, past: Past): string {
  const piece = render(past.messages, past.tools, false).findLast((one) => 'text' in one && one.text.includes(answer));
  const text = piece && 'text' in piece ? piece.text : '';
  return text.slice(text.lastIndexOf(answer) + answer.length).trimEnd();
}

/** What follows the end of the turn with the last `answer`. */
function cutDelta(skeleton: Skeleton, { ends, closing }: { ends: TurnEnds; closing: string | undefined }): Skeleton | undefined {
  const at = skeleton.findLastIndex((piece) => 'text' in piece && piece.text.includes(answer));
  const piece = skeleton[at];
  const text = piece && 'text' in piece ? piece.text : '';
  const from = text.lastIndexOf(answer);
  if (at < 0) return undefined;
  if (closing !== undefined) {
    const start = from + answer.length;
    if (!text.startsWith(closing, start)) return undefined;
    return [{ text: text.slice(start + closing.length) }, ...skeleton.slice(at + 1)];
  }
  const found = ends.all.map((end) => ({ end, place: text.indexOf(end, from) })).filter(({ place }) => place >= 0);
  const [first] = found.sort((a, b) => a.place - b.place);
  if (!first) return undefined;
  return [{ text: text.slice(first.place + first.end.length) }, ...skeleton.slice(at + 1)];
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
