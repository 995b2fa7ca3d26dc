// The events that a service has written so far.

import type { Client } from '@millrace/client';
import type { Event } from '@millrace/protocol';

export async function readPastEvents(client: Client, kind: Event['kind'], { after = 0 } = {}): Promise<Event[]> {
  const { last_event_id: last } = await client.status();
  const found: Event[] = [];
  for await (const event of client.events({ after })) {
    if (event.kind === kind) found.push(event);
    if (event.id >= last) break;
  }
  return found;
}
