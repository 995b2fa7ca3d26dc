// Who may call: whoever shows a key; without keys, only callers on a loopback address, and no web page that pretends to be one.

import { createHash, timingSafeEqual } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { RolloutError, routes } from '@millrace/protocol';
import type { FastifyRequest } from 'fastify';
import type { HttpConfig } from './http-config.ts';

/** Throws an Error that says what to do when the service would be open to a network. */
export function checkListen({ host, keys }: Pick<HttpConfig, 'host' | 'keys'>): void {
  if (keys.length > 0 || isLoopback(host)) return;
  throw new Error(
    `refusing to listen on ${host} without a key: put a key of 16 characters or more into http.keys, or set http.host to 127.0.0.1`,
  );
}

/** Throws when the request may not pass. */
export function openGuard(keys: readonly string[]): (request: FastifyRequest) => void {
  const digests = keys.map(toDigest);
  return (request) => {
    if (request.routeOptions.url === routes.getHealth.path) return;
    if (digests.length === 0) return checkLocal(request);
    const shown = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
    if (shown === undefined) throw new RolloutError('unauthorized', 'a key is needed: Authorization: Bearer <key>');
    const digest = toDigest(shown);
    // Every key is compared, so that the time taken says nothing.
    const matches = digests.filter((known) => timingSafeEqual(known, digest));
    if (matches.length === 0) throw new RolloutError('unauthorized', 'the key shown is not one of this service');
  };
}

/**
 * A name that resolves to 127.0.0.1 lets a web page reach an open service with its own Host (DNS rebinding), and any page
 * may send simple requests across origins; both name themselves in these headers.
 */
function checkLocal({ headers: { host, origin } }: FastifyRequest): void {
  if (host !== undefined && !isLoopback(toHostname(`http://${host}`)))
    throw new RolloutError('forbidden', `without a key only loopback names are served, and the Host header says ${host}`);
  if (origin !== undefined && !isLoopback(toHostname(origin)))
    throw new RolloutError('forbidden', `without a key pages of other sites are refused, and the Origin header says ${origin}`);
}

function toHostname(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : '';
}

function isLoopback(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return name === 'localhost' || name === '::1' || (isIPv4(name) && name.startsWith('127.'));
}

function toDigest(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
