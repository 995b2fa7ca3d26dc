// Names with their values, as in `x = 1, y = 2`: the names count, in any order.

import { nameOf, type ShortAnswer } from '../expression/answer-kinds.ts';
import { symbolsOf } from '../expression/expression.ts';

export interface Assignment {
  readonly name: string;
  readonly value: ShortAnswer;
}

/** Undefined if a part of it is no assignment. */
export function toAssignments(answer: ShortAnswer): readonly Assignment[] | undefined {
  if (answer.kind === 'list') {
    const parts = answer.items.map((item) => toAssignments(item)?.[0]);
    if (parts[0] === undefined) return undefined;
    // `x = 1, 2` names only the first.
    const named = parts.map((part, at) => part ?? inheritName(answer.items[at], parts[0]?.name));
    return named.every((part) => part !== undefined) ? named : undefined;
  }
  if (answer.kind === 'named') return [answer];
  return toChain(answer) ?? toOne(answer);
}

/** `x = y = 1` are two. */
function toChain(answer: ShortAnswer): readonly Assignment[] | undefined {
  if (answer.kind !== 'relation' || answer.sides.length < 3 || answer.marks.some((mark) => mark !== '=')) return undefined;
  const value = answer.sides.at(-1);
  const names = answer.sides.slice(0, -1).map(nameOf);
  if (value === undefined || nameOf(value) !== undefined || !names.every((name) => /^[a-z]$/.test(name ?? ''))) return undefined;
  return names.flatMap((name) => (name === undefined ? [] : [{ name, value: { kind: 'value', value } }]));
}

function toOne(answer: ShortAnswer): readonly Assignment[] | undefined {
  if (answer.kind !== 'relation' || answer.marks.some((mark) => mark !== '=')) return undefined;
  const [first, last] = [nameOf(answer.sides[0]), answer.sides.at(-1)];
  if (first !== undefined && last !== undefined && !isConstantName(first)) return [{ name: first, value: { kind: 'value', value: last } }];
  const turned = nameOf(last);
  const [value] = answer.sides;
  return turned !== undefined && value !== undefined && answer.sides.length === 2 && !isConstantName(turned)
    ? [{ name: turned, value: { kind: 'value', value } }]
    : undefined;
}

const isConstantName = (name: string): boolean => name === 'pi' || name === 'infinity';

function inheritName(item: ShortAnswer | undefined, name: string | undefined): Assignment | undefined {
  return item?.kind === 'value' && name !== undefined ? { name, value: item } : undefined;
}

/** Letters have to be the same; a word or a function may be called otherwise. */
export function isSameName(a: string, b: string): boolean {
  if (a === b) return true;
  const [baseA, baseB] = [baseOf(a), baseOf(b)];
  if (baseA === baseB) return a === baseA || b === baseB;
  if (a.startsWith('text ') || b.startsWith('text ')) return true;
  return (baseA.length > 1 && b === 'y') || (baseB.length > 1 && a === 'y');
}

const baseOf = (name: string): string => name.split('_')[0] ?? name;

/** Whether all are values of one name: `x_1 = 1, x_2 = 2`. */
export const hasOneName = (assignments: readonly Assignment[]): boolean => new Set(assignments.map(({ name }) => baseOf(name))).size === 1;

/** The values in the order of their names, which is that of a tuple. */
export function valuesInOrder(assignments: readonly Assignment[]): readonly ShortAnswer[] {
  const isLetters = assignments.every(({ name }) => /^[a-z](?:_\d)?$/i.test(name));
  const sorted = isLetters ? assignments.toSorted((a, b) => (a.name < b.name ? -1 : 1)) : assignments;
  return sorted.map(({ value }) => value);
}

/** A value or an equation with what it holds for, `\frac{1}{x}, x \ne 0`, against one without. */
export function withoutConditions(answer: ShortAnswer, other: ShortAnswer): ShortAnswer {
  if (answer.kind !== 'list' || other.kind === 'list' || answer.joined !== 'comma') return answer;
  const [first, ...conditions] = answer.items;
  const isCondition = (one: ShortAnswer) => one.kind === 'relation' && one.marks.every((mark) => mark !== '=');
  const hasName = first?.kind === 'value' ? symbolsOf(first.value).size > 0 : first?.kind === 'relation' && !isCondition(first);
  return first !== undefined && hasName && conditions.length > 0 && conditions.every(isCondition) ? first : answer;
}
