// The tasks: a house whose rooms hold notes. A note names the animal in the room or the room it has gone to. So the right answer is only
// in the sandbox, and the next action depends on the last observation.

import type { Random } from '../model/random.ts';
import { animals, places } from '../model/vocabulary.ts';

export interface HouseTask {
  /** The room in the question. */
  readonly start: string;
  /** What each room's note says: an animal, or another room. */
  readonly rooms: Readonly<Record<string, string>>;
}

/** The longest trail, in rooms. */
export const longestTrail = 2;

export function makeTask(random: Random): HouseTask {
  const order = places.map((place) => ({ place, key: random.next() })).sort((a, b) => a.key - b.key);
  const trail = order.slice(0, 1 + random.below(longestTrail)).map(({ place }) => place);
  const rooms = Object.fromEntries(places.map((place): [string, string] => [place, random.pick(animals)]));
  for (const [index, next] of trail.slice(1).entries()) rooms[trail[index] ?? ''] = next;
  return { start: trail[0] ?? places[0], rooms };
}

/** The rooms that lead to the answer, in order, and the answer. Undefined if the notes lead in a circle or nowhere. */
export function followNotes({ start, rooms }: HouseTask): { readonly trail: readonly string[]; readonly answer: string } | undefined {
  const trail: string[] = [];
  for (let place = start; !trail.includes(place); ) {
    const note = rooms[place];
    if (note === undefined) return undefined;
    trail.push(place);
    if (!(note in rooms)) return { trail, answer: note };
    place = note;
  }
  return undefined;
}

/**
 * Half for the trail, half for the answer at its end. Looks on the trail count and looks elsewhere cost; an answer that was not seen on
 * the trail is a guess and earns nothing.
 */
export function scoreVisit(task: HouseTask, { seen, answer }: { readonly seen: readonly string[]; readonly answer: string }) {
  const truth = followNotes(task);
  if (!truth) throw new Error(`the notes lead nowhere from ${task.start}`);
  const { trail } = truth;
  const strayed = trail.findIndex((place, index) => seen[index] !== place);
  const kept = strayed < 0 ? trail.length : strayed;
  const isRight = answer === truth.answer;
  const isSolved = isRight && kept === trail.length;
  return { reward: (0.5 * kept) / Math.max(trail.length, seen.length) + (isSolved ? 0.5 : 0), isRight, isSolved };
}
