// An event of the service as a line of text.

import type { Event } from '@millrace/protocol';
import { cut, toVisible } from './text.ts';

/** Its ids, of which the start is enough for `millrace show`, and its facts. */
export function describeEvent({ rollout_id, worker_id, backend_id, data }: Event, idColumns: number): string {
  const ids = [rollout_id ?? worker_id, backend_id].flatMap((id) => (id === undefined ? [] : [cut(id, idColumns)]));
  const facts = Object.entries(data).flatMap(([name, value]) => {
    if (value === null || typeof value === 'object' || name === 'worker') return [];
    return name === 'state' || name === 'reason' ? [String(value)] : [`${name} ${typeof value === 'number' ? toNumber(value) : value}`];
  });
  return toVisible([...ids, ...facts].join('  '));
}

function toNumber(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 3 });
}
