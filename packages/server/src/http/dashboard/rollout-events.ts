// The events of one rollout, found in the log without an index: ids and times of events grow together, so its first event is found by
// halving, and the log is read from there to its end.

import type { Event } from '@millrace/protocol';
import type { RolloutRecord, Store } from '@millrace/store';

type EventLog = Pick<Store, 'events' | 'oldestEventId' | 'lastEventId'>;

const kinds = ['rollout-queue', 'rollout-move', 'rollout-place', 'rollout-cancel', 'rollout-end', 'turn-end'] as const;
const pageSize = 1000;
/** A rollout of hours on a busy service has more around it: the rest is left out. */
const mostPages = 40;
/** Servers and workers may differ by this much in their clocks. */
const slackMs = 2000;

export async function readRolloutEvents(
  store: EventLog,
  record: Pick<RolloutRecord, 'id' | 'createdAtMs' | 'endedAtMs'>,
): Promise<Event[]> {
  const found: Event[] = [];
  let after = await findBefore(store, record.createdAtMs - slackMs);
  for (let page = 0; page < mostPages; page++) {
    const { events, last } = await store.events(after, { limit: pageSize, kinds });
    found.push(...events.filter(({ rollout_id }) => rollout_id === record.id));
    const end = events.at(-1);
    const isPast = record.endedAtMs !== undefined && end !== undefined && Date.parse(end.at) > record.endedAtMs + slackMs;
    if (last <= after || isPast) break;
    after = last;
  }
  return found;
}

/** The id of an event before which nothing is as new as `atMs`. */
async function findBefore(store: EventLog, atMs: number): Promise<number> {
  let low = (await store.oldestEventId()) - 1;
  let high = await store.lastEventId();
  while (high - low > pageSize / 2) {
    const middle = Math.floor((low + high) / 2);
    const [event] = (await store.events(middle, { limit: 1 })).events;
    if (event !== undefined && Date.parse(event.at) < atMs) low = middle;
    else high = middle;
  }
  return low;
}
