// The shape of what an engine replied: statuses, keys, types, and the few values that adapters decide on. Two recordings with equal shapes
// are read in the same way, whatever the model said.

import type { RecordedExchange, RecordedReply, Recording } from '@millrace/testkit';

/** Values that adapters compare, and that therefore belong to the shape. */
const decisive = [
  'object',
  'type',
  'param',
  'code',
  'status',
  'finish_reason',
  'stop_type',
  'output_mode',
  'is_paused',
  'message',
  'detail',
  'error',
];

/** As lines, one for each field, so that a difference is easy to read. */
export function shapeOf({ exchanges }: Recording): string[] {
  return exchanges.flatMap((exchange, i) => exchangeShape(exchange).map((line) => `${i + 1}: ${line}`));
}

/**
 * Every kind of event as well: which keys come together in one event, and in which order the kinds first come. The tokens in an event are
 * left out, because how many it has is chance.
 */
export function strictShapeOf(recording: Recording): string[] {
  const kinds = recording.exchanges.flatMap(({ reply }, i) =>
    unique((reply?.events ?? []).map((event) => `${i + 1}: event { ${eventKind(event)} }`)),
  );
  return [...shapeOf(recording), ...kinds];
}

function eventKind(event: string): string {
  if (!event.startsWith('data: {')) return event;
  const lines = fieldsOf(JSON.parse(event.slice(6)), 'event').map((line) => line.replace(/(\.(?!choices)[\w.]+\[\]).*/, '$1'));
  return unique(lines).join(', ');
}

function exchangeShape({ request, reply, nothing }: RecordedExchange): string[] {
  const head = `${request.method} ${request.path}`;
  if (!reply) return [`${head}: ${nothing}`];
  return [
    `${head}: ${reply.status}, ${reply.headers['content-type'] ?? 'no type'}, ended by ${reply.ended}`,
    ...Object.keys(reply.headers)
      .sort()
      .map((name) => `header ${name}`),
    ...bodyShape(reply),
  ];
}

function bodyShape({ body, text, events }: RecordedReply): string[] {
  if (events) return eventShapes(events);
  if (text !== undefined) return [`text ${JSON.stringify(withoutNumbers(text))}`];
  return fieldsOf(body, '$');
}

/** The fields of all events together: how many there are, and which of them came empty, is chance. */
function eventShapes(events: readonly string[]): string[] {
  const lines = events.flatMap((event) => (event.startsWith('data: {') ? fieldsOf(JSON.parse(event.slice(6)), 'event') : [event]));
  const isFilled = (list: string) => lines.some((line) => line.startsWith(list) && !line.endsWith(': empty'));
  return unique(lines.filter((line) => !line.endsWith(': empty') || !isFilled(line.slice(0, -': empty'.length)))).sort();
}

function fieldsOf(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return value.length === 0 ? [`${path}[]: empty`] : unique(value.flatMap((one) => fieldsOf(one, `${path}[]`)));
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    // Maps from token ids or tokens have as keys what the model said.
    const isMap = entries.length > 0 && entries.every(([key]) => /^(\d+|token_id:\d+)$/.test(key));
    return unique(entries.flatMap(([key, one]) => fieldsOf(one, isMap ? `${path}.<token>` : `${path}.${key}`)));
  }
  const key = /\.(\w+)$/.exec(path)?.[1] ?? '';
  const seen = decisive.includes(key) && value !== null ? ` ${JSON.stringify(withoutNumbers(value))}` : '';
  return [`${path}: ${value === null ? 'null' : typeof value}${seen}`];
}

function unique(lines: readonly string[]): string[] {
  return [...new Set(lines)];
}

function withoutNumbers(value: unknown): unknown {
  return typeof value === 'string' ? value.replace(/\d+(\.\d+)?/g, '#') : value;
}
