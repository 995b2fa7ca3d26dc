// Answers with server-sent events.

import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';

/** The connection closes with the stream, so that closing the app need not wait for a keep-alive connection. */
export function sendEvents(reply: FastifyReply, texts: AsyncIterable<string>): FastifyReply {
  reply.type('text/event-stream').headers({ 'cache-control': 'no-cache', 'x-accel-buffering': 'no', connection: 'close' });
  return reply.send(Readable.from(texts, { highWaterMark: 1 }));
}
