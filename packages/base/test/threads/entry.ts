// The functions that the tests of the pool run in its threads.

import { serveFunctions } from '../../src/threads/serve-functions.ts';

export const add = (a: number, b: number): number => a + b;

export const fail = (text: string): never => {
  throw new Error(text);
};

export const outOfRange = (): string => (1).toFixed(200);

export function spin(): never {
  for (;;);
}

export const backtrack = (text: string): boolean => /^(a+)+$/.test(text);

export function fill(): never {
  const all: unknown[] = [];
  for (;;) all.push(Array.from({ length: 100_000 }, (_, at) => ({ at })));
}

export const nest = (depth: number): number => (depth === 0 ? 0 : 1 + nest(depth - 1));

export const repeat = (text: string, count: number): number => text.repeat(count).length;

export const lengthOf = (bytes: Uint8Array): number => bytes.length;

serveFunctions([add, fail, outOfRange, spin, backtrack, fill, nest, repeat, lengthOf]);
