// A reply that is sent in pieces, each only when the client has room for it. If a piece cannot be made, the connection is closed without
// the end of the reply, so that no client takes half of it for the whole.

import { Readable } from 'node:stream';
import { type Log, stackOf } from '@millrace/base/log';
import type { FastifyReply } from 'fastify';

export function sendPieces(reply: FastifyReply, pieces: AsyncIterable<string | Buffer>, log: Log): FastifyReply {
  return reply.send(Readable.from(watch(pieces, { url: reply.request.url, log }), { highWaterMark: 1 }));
}

async function* watch(pieces: AsyncIterable<string | Buffer>, { url, log }: { url: string; log: Log }): AsyncGenerator<string | Buffer> {
  try {
    yield* pieces;
  } catch (error) {
    log.error('reply-cut-off', { url, error: stackOf(error) });
    throw error;
  }
}
