// Access control: with keys, callers must send one; without keys, only loopback callers are served, and no web pages of other sites.

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { BlockList, isIP, isIPv4 } from 'node:net';
import { dashboardPaths, RolloutError, routes } from '@millrace/protocol';
import type { FastifyRequest } from 'fastify';
import type { HttpConfig } from './http-config.ts';

export type KeyConfig = Pick<HttpConfig, 'keys' | 'submitKeys' | 'readKeys' | 'workerKeys'> & {
  readonly prorl?: Pick<HttpConfig['prorl'], 'withoutKey'>;
};

/** What a key allows; each right includes those before it. The right to work is apart: only `admin` includes it. */
const rights = ['read', 'submit', 'admin'] as const;
type Right = (typeof rights)[number] | 'work';

/** Throws, with instructions, if the service would be open to the network. */
export function checkListen({ host, ...keys }: KeyConfig & Pick<HttpConfig, 'host'>): void {
  if (hasKeys(keys) || isLoopback(host)) return;
  throw new Error(
    `refusing to listen on ${host} without a key: add a key of at least 16 characters to http.keys, or set http.host to 127.0.0.1`,
  );
}

/** Without keys, a service is open to this machine only. */
export function hasKeys({ keys, submitKeys, readKeys, workerKeys }: KeyConfig): boolean {
  return [keys, submitKeys, readKeys, workerKeys].some((list) => list.length > 0);
}

/** A service that has keys keeps some: without any, every local process could call it. */
export function replaceKeys(
  config: { -readonly [Name in keyof KeyConfig]: KeyConfig[Name] },
  { keys, submitKeys, readKeys, workerKeys }: KeyConfig,
): void {
  const next = { keys, submitKeys, readKeys, workerKeys };
  if (hasKeys(config) !== hasKeys(next))
    throw new Error('a service with keys needs at least one, and a service without keys has to be started again to get the first');
  Object.assign(config, next);
}

/** For supervisors and load balancers, which send no key; and the dashboard's files, which ask for it. */
const openPaths: ReadonlySet<string | undefined> = new Set([routes.getHealth.path, routes.getReadiness.path, ...dashboardPaths]);

/** Calls of workers that have the server in place of a store. */
export const workerCallsPath = '/v1/worker-calls/:name';

/** Requests of agents, whose worker checks the key of their gateway. */
export const gatewayPaths: readonly string[] = ['/v1/gateways/:id/v1/*', '/v1/gateways/:id/v1beta/*'];

/** The returned function throws if a request is not allowed, by the keys as they are at that moment. */
export function openGuard(keys: KeyConfig): (request: FastifyRequest) => void {
  const isTrusted = openTrust(keys.prorl?.withoutKey ?? []);
  return (request) => {
    if (openPaths.has(request.routeOptions.url) || gatewayPaths.includes(request.routeOptions.url ?? '')) return;
    const known = toKnownKeys(keys);
    if (known.length === 0) return checkLocal(request);
    if (isTrusted(request)) return;
    const shown = readKey(request.headers.authorization);
    if (shown === undefined) throw new RolloutError('unauthorized', 'a key is required: Authorization: Bearer <key>');
    const digest = toDigest(shown);
    // Compare every key, so that the duration reveals nothing.
    const matches = known.filter((one) => timingSafeEqual(one.digest, digest));
    if (matches.length === 0) throw new RolloutError('unauthorized', 'the key is not valid for this service');
    const needed = toNeededRight(request);
    if (matches.some(({ right }) => includes(right, needed))) return;
    throw new RolloutError('forbidden', `${request.method} ${request.routeOptions.url} needs a key with the right to ${needed}`);
  };
}

function includes(right: Right, needed: Right): boolean {
  if (right === 'admin' || right === needed) return true;
  return right !== 'work' && needed !== 'work' && rights.indexOf(right) >= rights.indexOf(needed);
}

/** What the caller of an allowed request may do; everything on a service without keys. */
export function findRight({ headers }: FastifyRequest, keys: KeyConfig): Right {
  const digest = toDigest(readKey(headers.authorization) ?? '');
  const found = toKnownKeys(keys).filter((one) => timingSafeEqual(one.digest, digest));
  return hasKeys(keys) ? (rights.findLast((right) => found.some((one) => one.right === right)) ?? 'read') : 'admin';
}

function toKnownKeys({ keys, submitKeys, readKeys, workerKeys }: KeyConfig): { readonly digest: Buffer; readonly right: Right }[] {
  const byRight = { read: readKeys, submit: submitKeys, admin: keys, work: workerKeys };
  return ([...rights, 'work'] as const).flatMap((right) => byRight[right].map((key) => ({ digest: toDigest(key), right })));
}

const workRoutes = Object.values(routes).filter(
  ({ tag }) => tag === 'rollouts' || tag === 'batches' || tag === 'gateways' || tag === 'evaluations' || tag === 'trainer',
);
const submitPaths: ReadonlySet<string> = new Set(
  [...workRoutes, routes.prorlProcess, routes.prorlCancel].map(({ path }) => path.replace(/\{(\w+)\}/g, ':$1')),
);

const prorlPaths: ReadonlySet<string> = new Set(
  Object.values(routes)
    .filter(({ tag }) => tag === 'prorl')
    .map(({ path }) => path),
);

/** ProRL Agent's clients send no key: its routes can be opened to the addresses of the trainers. */
function openTrust(subnets: readonly string[]): (request: FastifyRequest) => boolean {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [address = '', bits] = subnet.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    list.addSubnet(address, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family);
  }
  return ({ ip, headers, routeOptions: { url = '' } }) => {
    if (!prorlPaths.has(url) || headers.authorization !== undefined || isFromBrowser(headers)) return false;
    const address = ip.replace(/^::ffff:(?=\d+\.)/, '');
    return list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  };
}

/** Everything but rollouts, batches, evaluations and steps of trainers changes the service for all callers. */
function toNeededRight({ method, query, routeOptions: { url = '' } }: FastifyRequest): Right {
  if (url === workerCallsPath) return 'work';
  // Without a wire, the reply holds the password of the store.
  if (url === routes.getJoin.path) return typeof query === 'object' && query !== null && 'wire' in query ? 'work' : 'admin';
  if (method === 'GET' || method === 'HEAD') return 'read';
  return submitPaths.has(url) ? 'submit' : 'admin';
}

/**
 * With a name that resolves to 127.0.0.1, a web page can reach an open service under its own Host (DNS rebinding), and any page
 * can send simple cross-origin requests. Browsers identify both in these headers. One that sends none of them may not change anything.
 */
function checkLocal({ method, headers }: FastifyRequest): void {
  const { host, origin, referer, 'sec-fetch-site': site } = headers;
  if (host !== undefined && !isLoopback(toHostname(`http://${host}`)))
    throw new RolloutError('forbidden', `without a key, only loopback hosts are allowed, but the Host header is ${host}`);
  if (origin !== undefined && !isLoopback(toHostname(origin)))
    throw new RolloutError('forbidden', `without a key, pages of other sites are refused, and the Origin header is ${origin}`);
  if (origin !== undefined || !isFromBrowser(headers)) return;
  const isForeign = site === 'cross-site' || (referer !== undefined && !isLoopback(toHostname(referer)));
  const isUnnamed = site === undefined && referer === undefined && method !== 'GET' && method !== 'HEAD';
  if (isForeign || isUnnamed)
    throw new RolloutError(
      'forbidden',
      'without a key, pages of other sites are refused, and this request does not show that it is from this one',
    );
}

function isFromBrowser({ origin, referer, 'sec-fetch-site': site, 'user-agent': agent = '' }: IncomingHttpHeaders): boolean {
  return origin !== undefined || referer !== undefined || site !== undefined || agent.startsWith('Mozilla/');
}

function toHostname(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : '';
}

function isLoopback(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return name === 'localhost' || name === '::1' || (isIPv4(name) && name.startsWith('127.'));
}

/** A name for the caller's key that does not reveal it; empty when the service has no keys. */
export function callerOf({ headers }: FastifyRequest, keys: KeyConfig): string {
  const shown = readKey(headers.authorization);
  return hasKeys(keys) && shown !== undefined ? toDigest(shown).toString('hex').slice(0, 12) : '';
}

function readKey(authorization = ''): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
}

function toDigest(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
