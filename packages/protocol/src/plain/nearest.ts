// Finds the known word that a mistyped one most likely stands for.

/** Undefined when no known word is close enough to be meant. */
export function chooseNearest(word: string, known: readonly string[]): string | undefined {
  const ranked = known.map((name) => ({ name, distance: toDistance(word, name) })).sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  if (best === undefined) return undefined;
  const near = best.distance <= Math.max(1, Math.floor(Math.max(word.length, best.name.length) / 3));
  if (near || (word.length > 1 && best.name.startsWith(word))) return best.name;
  return known.find((name) => word.length > 1 && name.startsWith(word)) ?? chooseByParts(word, known);
}

/** The only name that has all parts of the word, or whose parts the word all has: `queued` means `all-queued`. */
function chooseByParts(word: string, known: readonly string[]): string | undefined {
  const toParts = (text: string) => text.split(/[-_. ]/).filter((part) => part.length > 1);
  const parts = toParts(word);
  if (parts.length === 0) return undefined;
  const isWithin = (some: readonly string[], all: readonly string[]) => some.length > 0 && some.every((part) => all.includes(part));
  const [only, ...others] = known.filter((name) => isWithin(parts, toParts(name)) || isWithin(toParts(name), parts));
  return others.length === 0 ? only : undefined;
}

/** `; did you mean answer?`, or nothing. */
export function didYouMean(word: string, known: readonly string[]): string {
  const nearest = chooseNearest(word, known);
  return nearest === undefined ? '' : `; did you mean ${nearest}?`;
}

/** The number of edits between two words; swapping two neighbouring letters is one edit. */
function toDistance(a: string, b: string): number {
  let [before, above]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= a.length; row++) {
    const line = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1] ? 0 : 1;
      const at = (cells: number[], index: number) => cells[index] ?? 0;
      let least = Math.min(at(above, column) + 1, at(line, column - 1) + 1, at(above, column - 1) + same);
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) least = Math.min(least, at(before, column - 2) + 1);
      line.push(least);
    }
    [before, above] = [above, line];
  }
  return above[b.length] ?? 0;
}
