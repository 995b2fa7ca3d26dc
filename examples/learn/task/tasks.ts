// The tasks: a house whose rooms hold notes. A note names either the animal that is there or the room it has gone to, so the right
// answer is in the sandbox alone, and what to do next depends on what was just seen.

import type { Random } from '../model/random.ts';
import { animals, places } from '../model/vocabulary.ts';

export interface HouseTask {
  /** The room that is asked about. */
  readonly start: string;
  /** What each room's note says: an animal, or another room. */
  readonly rooms: Readonly<Record<string, string>>;
}

/** Rooms on the way to the answer, at most. */
export const longestTrail = 2;

export function makeTask(random: Random): HouseTask {
  const order = places.map((place) => ({ place, key: random.next() })).sort((a, b) => a.key - b.key);
  const trail = order.slice(0, 1 + random.below(longestTrail)).map(({ place }) => place);
  const rooms = Object.fromEntries(places.map((place): [string, string] => [place, random.pick(animals)]));
  for (const [index, next] of trail.slice(1).entries()) rooms[trail[index] ?? ''] = next;
  return { start: trail[0] ?? places[0], rooms };
}

/** Which rooms lead to the answer, in order, and the answer. Undefined where the notes lead in a circle or nowhere. */
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
 * Half for the way, half for the answer at its end. Of the way counts how far the looks kept to the trail, and looks beside it
 * cost; an answer that was not seen on the trail is a guess, and earns nothing.
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
