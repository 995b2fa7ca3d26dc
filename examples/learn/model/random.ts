// Random numbers from a seed: the same seed gives the same numbers on every machine.

export interface Random {
  /** From 0 up to, not including, 1. */
  next(): number;
  normal(): number;
  /** A whole number from 0 up to, not including, `n`. */
  below(n: number): number;
  pick<T>(items: readonly T[]): T;
}

export function makeRandom(...seeds: readonly (number | string)[]): Random {
  let state = hash(seeds.join(' '));
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n: number) => Math.floor(next() * n);
  return {
    next,
    below,
    normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
    pick(items) {
      const item = items[below(items.length)];
      if (item === undefined) throw new RangeError('nothing to pick from');
      return item;
    },
  };
}

/** FNV-1a, so that similar seeds give different streams. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}
