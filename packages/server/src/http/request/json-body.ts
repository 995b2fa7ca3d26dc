// Parses request bodies: JSON in valid UTF-8, without keys that could pollute prototypes. Invalid JSON is refused with the position
// of the error.

import { Pace, runNow } from '@millrace/base/pace';
import { messageOf, RolloutError } from '@millrace/protocol';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { findShapeFault } from './json-shape.ts';

/** An empty body counts as no body, regardless of its content type: aiohttp names one for posts without a body. */
export function acceptJson(app: FastifyInstance): void {
  const pace = new Pace();
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', async ({ headers }: FastifyRequest) => {
    if (headers['content-length'] === '0') return undefined;
    throw new RolloutError(
      'unsupported-media-type',
      `Unsupported Media Type: a body must be application/json, not ${headers['content-type']}`,
    );
  });
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    if (body.length === 0) return undefined;
    // A long body is read, parsed and used in different turns of the event loop.
    const isLong = body.length > longBytes;
    const fault = isLong ? await pace.run(findShapeFault(body)) : runNow(findShapeFault(body));
    if (fault !== undefined) throw new RolloutError('bad-request', fault);
    if (isLong) await pace.turn();
    const text = tryDecode(body);
    if (text === undefined) throw new RolloutError('bad-request', 'the body is not valid UTF-8');
    const value = await new Promise((resolve, reject) => {
      void parse(request, text, (error, value) => (error === null ? resolve(value) : reject(toJsonError(text))));
    });
    if (isLong) await pace.turn();
    return value;
  });
}

const longBytes = 1 << 16;

function tryDecode(body: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    return undefined;
  }
}

function toJsonError(text: string): RolloutError {
  const fault = tryParse(text);
  if (fault === undefined)
    return new RolloutError('bad-request', 'the body contains a forbidden key: __proto__, or prototype in constructor');
  const position = Number(/at position (\d+)/.exec(fault)?.[1] ?? findFault(text));
  const place = /at position/.test(fault) ? '' : ` at position ${position}`;
  return new RolloutError('bad-request', `the body is not valid JSON: ${fault}${place}`, { details: { position } });
}

function tryParse(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    const message = messageOf(error);
    const at = message.endsWith('is not valid JSON') ? message.search(/, (?:\.\.\.)?"/) : -1;
    return at < 0 ? message : message.slice(0, at);
  }
}

const longestSearched = 1 << 15;

/**
 * V8 reports no position for an unexpected token. A prefix that ends before the error is merely incomplete, so a binary search
 * finds the longest such prefix. In a long text only the first part is searched.
 */
function findFault(text: string): number {
  let low = 0;
  let high = Math.min(text.length, longestSearched);
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const fault = tryParse(text.slice(0, middle));
    if (fault?.startsWith('Unexpected token') === true) high = middle - 1;
    else low = middle;
  }
  return low;
}
