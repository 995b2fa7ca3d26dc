// Every error response has one shape, from one table. Unexpected errors are logged in full, and their details are not sent.

import type { Socket } from 'node:net';
import { type Log, stackOf } from '@millrace/base/log';
import { definedOf, type ErrorCode, RolloutError, type Route, routes, toErrorBody } from '@millrace/protocol';
import { StoreError, StoreFault } from '@millrace/store';
import type { FastifyReply, FastifyRequest } from 'fastify';

const storeRetryMs = 5000;

/** Errors that Fastify raises before a handler runs. */
const frameworkCodes: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body-too-large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported-media-type',
};

export function toReplyError(error: unknown, log: Log, request: FastifyRequest): RolloutError {
  if (error instanceof StoreError) {
    log.error('request-store-failed', {
      method: request.method,
      route: request.routeOptions.url,
      request_id: request.id,
      error: error.message,
    });
    const code = error instanceof StoreFault && error.isDiskFull ? 'store-full' : 'internal';
    return new RolloutError(code, `${error.publicMessage} (request_id ${request.id})`, { details: { retry_after_ms: storeRetryMs } });
  }
  if (error instanceof RolloutError) return error.code === 'store-full' ? withRetry(error) : error;
  const { code, statusCode } = error instanceof Error ? fromFramework(error) : {};
  const known = code === undefined ? undefined : frameworkCodes[code];
  const message = error instanceof Error ? error.message : '';
  if (known !== undefined) return new RolloutError(known, message);
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) return new RolloutError('bad-request', message);
  log.error('request-failed', { method: request.method, route: request.routeOptions.url, request_id: request.id, error: stackOf(error) });
  return new RolloutError('internal', `the service failed on this request; see its log for request_id ${request.id}`);
}

function withRetry({ code, message }: RolloutError): RolloutError {
  return new RolloutError(code, message, { details: { retry_after_ms: storeRetryMs } });
}

export function sendError(reply: FastifyReply, error: RolloutError, extra: Readonly<Record<string, unknown>> = {}): FastifyReply {
  const retryMs = error.details?.retry_after_ms;
  if (typeof retryMs === 'number') reply.header('retry-after', Math.ceil(retryMs / 1000));
  if (error.code === 'unauthorized') reply.header('www-authenticate', 'Bearer');
  return reply
    .status(error.status)
    .type('application/json')
    .send({ ...extra, ...toErrorBody(error) });
}

/** Distinguishes a path that exists under another method from one that does not exist. */
export function replyToUnknownRoute(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const path = request.url.replace(/\?.*/s, '');
  const table: readonly Route[] = Object.values(routes);
  const allowed = table.filter((route) => matches(route.path, path)).map((route) => route.method);
  if (allowed.length === 0) return sendError(reply, new RolloutError('not-found', `no such route: ${request.method} ${cut(path)}`));
  reply.header('allow', allowed.join(', '));
  return sendError(reply, new RolloutError('method-not-allowed', `${cut(path)} supports ${allowed.join(', ')}, not ${request.method}`));
}

/** For bytes that are not a valid request. */
export function replyToBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const late = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
  const refusal = late
    ? new RolloutError('request-timeout', 'the request took too long to arrive')
    : new RolloutError('bad-request', 'not an HTTP request');
  const body = JSON.stringify(toErrorBody(refusal));
  const head = [
    `HTTP/1.1 ${refusal.status} ${late ? 'Request Timeout' : 'Bad Request'}`,
    'content-type: application/json',
    'connection: close',
  ];
  socket.end(`${[...head, `content-length: ${Buffer.byteLength(body)}`].join('\r\n')}\r\n\r\n${body}`);
}

function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split('/');
  const given = path.split('/');
  return (
    wanted.length === given.length && wanted.every((part, index) => (part.startsWith('{') ? given[index] !== '' : part === given[index]))
  );
}

function fromFramework(error: Error & { code?: unknown; statusCode?: unknown }): { code?: string; statusCode?: number } {
  return definedOf({
    code: typeof error.code === 'string' ? error.code : undefined,
    statusCode: typeof error.statusCode === 'number' ? error.statusCode : undefined,
  });
}

function cut(path: string): string {
  return path.length > 200 ? `${path.slice(0, 200)}…` : path;
}
