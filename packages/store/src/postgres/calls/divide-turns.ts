// Divides the places of one claim among the classes of work, as if they were given one at a time: the highest rank first; within it
// the class with the fewest active rollouts for its weight, and of equal ones the one that waited longest.

export interface DueClass {
  readonly seq: number;
  readonly rank: number;
  readonly weight: number;
  readonly active: number;
  readonly due: number;
  /** The id of the event at which it last had its turn. */
  readonly served: number;
}

/** The class of each place, in order. */
export function divideTurns(classes: readonly DueClass[], places: number): number[] {
  const shares = classes.map((one) => ({ ...one, turns: 0, last: one.served }));
  const newest = Math.max(0, ...classes.map(({ served }) => served));
  const order: number[] = [];
  while (order.length < places) {
    const open = shares.filter(({ due, turns }) => due > turns);
    const [next] = open.sort((a, b) => b.rank - a.rank || shareOf(a) - shareOf(b) || a.last - b.last || a.seq - b.seq);
    if (!next) break;
    order.push(next.seq);
    next.turns += 1;
    next.last = newest + order.length;
  }
  return order;
}

function shareOf({ active, turns, weight }: { readonly active: number; readonly turns: number; readonly weight: number }): number {
  return (active + turns) / weight;
}
