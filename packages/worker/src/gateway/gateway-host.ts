// Where a worker takes the requests of its gateways: one HTTP server, which only the server of the service calls. A request is answered
// in the shape of its wire, with an error too. A stream has its headers at once, and events while the client waits.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type Clock, sleep } from '@millrace/base/clock';
import { type Log, stackOf } from '@millrace/base/log';
import { type FoundWire, findWire, GatewayError, joinReply, type ReplyEvent, type ReplyHead, type Wire } from '@millrace/gateway';
import { messageOf, tryJson } from '@millrace/protocol';
import { z } from 'zod';
import type { GatewaySession } from './gateway-session.ts';

interface HostedGateway {
  readonly session: GatewaySession;
  readonly model: string;
  /** The SHA-256 of its key, in hex. */
  readonly keyDigest: string;
  /** Called when a request begins and when it has ended. */
  noteRequest(change: 1 | -1): void;
  /** The SHA-256 of what the server sends to end it, in hex. */
  readonly controlDigest: string;
  end(verdict: GatewayVerdict): void;
}

interface HostOptions {
  readonly host: string;
  readonly clock: Clock;
  readonly log: Log;
}

const mostBodyBytes = 16 << 20;
/** Of one gateway at once: more are asked to come again. */
const mostRequests = 64;
const mostBytes = 64 << 20;
/** What is refused, and what samples nothing, is answered after this time: a program that does nothing else must not fill a worker. */
const restMs = 50;
/** The shortest patience that was measured among harnesses is 65 s. */
const keepAliveMs = 10_000;
/** A reply that is not streamed begins with white space, which JSON allows, once its client has waited for this long. */
const whiteSpaceMs = 30_000;

export class GatewayHost implements AsyncDisposable {
  readonly url: string;
  readonly #options: HostOptions;
  readonly #server: Server;
  readonly #hosted = new Map<string, HostedGateway>();
  readonly #loads = new WeakMap<HostedGateway, GatewayLoad>();

  private constructor(server: Server, url: string, options: HostOptions) {
    this.#server = server;
    this.url = url;
    this.#options = options;
    server.on('request', (request, response) => void this.#serve(request, response));
  }

  static async open(options: HostOptions): Promise<GatewayHost> {
    const server = createServer({ requestTimeout: 0 });
    server.listen(0, options.host);
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    return new GatewayHost(server, `http://${options.host}:${port}`, options);
  }

  /** Until it is disposed, requests for this id are answered. */
  add(id: string, gateway: HostedGateway): Disposable {
    this.#hosted.set(id, gateway);
    return { [Symbol.dispose]: () => void this.#hosted.delete(id) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /** For connections that come from the sandbox of this gateway's own agent. It cannot end the gateway. */
  openServer(id: string): Server {
    return createServer({ requestTimeout: 0 }, (request, response) => void this.#serve(request, response, id));
  }

  async #serve(request: IncomingMessage, response: ServerResponse, ownId?: string): Promise<void> {
    let gateway: HostedGateway | undefined;
    let load: GatewayLoad | undefined;
    let found: FoundWire | undefined;
    try {
      const url = readUrl(request.url ?? '/');
      const [, id = '', path = ''] = ownId === undefined ? (/^\/([^/]+)(\/.*)$/.exec(url.pathname) ?? []) : ['', ownId, url.pathname];
      found = findWire(request.method ?? '', path, url.searchParams);
      gateway = this.#hosted.get(ownId ?? decodeURIComponent(id));
      gateway?.noteRequest(1);
      if (!gateway) throw new GatewayError('ended', `gateway ${id} has ended, or is not held by this worker`);
      if (path === '/control' && ownId === undefined) return await end(gateway, request, response);
      checkKey(gateway, request, url);
      load = this.#enter(gateway);
      if (!found) throw new GatewayError('not-found', `no such route: ${request.method} ${path}`);
      await this.#answer({ gateway, found, request, response, load });
    } catch (error) {
      await sleep(restMs, { clock: this.#options.clock });
      this.#refuse(found?.wire, response, error);
    } finally {
      if (load) load.requests -= 1;
      gateway?.noteRequest(-1);
    }
  }

  #enter(gateway: HostedGateway): GatewayLoad {
    const load = this.#loads.get(gateway) ?? { requests: 0, bytes: 0 };
    this.#loads.set(gateway, load);
    if (load.requests >= mostRequests) throw new GatewayError('busy', `${mostRequests} requests of this gateway are being answered`);
    load.requests += 1;
    return load;
  }

  async #answer({ gateway, found, request, response, load }: GatewayCall): Promise<void> {
    const { wire, what, address } = found;
    if (what === 'models') return sendJson(response, 200, toModels(gateway.model, this.#nowS));
    const given = wire.parse(await readBody(request, load), address);
    if (what === 'count') await sleep(restMs, { clock: this.#options.clock });
    if (what === 'count') return sendJson(response, 200, { input_tokens: await gateway.session.count(given) });
    const { promptTokens, run } = await gateway.session.open(given);
    const head: ReplyHead = {
      id: randomBytes(12).toString('hex'),
      model: given.model || gateway.model,
      createdS: this.#nowS,
      promptTokens,
    };
    const gone = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) gone.abort(new ClientGone('the client left before its reply was complete'));
    });
    if (!given.isStreamed) {
      const events: ReplyEvent[] = [];
      using _ = this.#keepAlive(whiteSpaceMs, () => beginJson(response).write(' '));
      await run((event) => events.push(event), gone.signal);
      return void beginJson(response).end(JSON.stringify(wire.toReply(joinReply(events), head)));
    }
    const stream = wire.openStream(head, given);
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache', 'x-accel-buffering': 'no' });
    response.write(stream.start());
    using alive = this.#keepAlive(keepAliveMs, () => response.write(stream.write({ kind: 'keep-alive' })));
    await run((event) => {
      alive.note();
      response.write(stream.write(event));
    }, gone.signal);
    response.end();
  }

  /** Calls back whenever nothing was written for a while. The timer is not reset by each event: when it fires, it looks how long that was. */
  #keepAlive(everyMs: number, write: () => void): Disposable & { note(): void } {
    const { clock } = this.#options;
    let writtenAtMs = clock.monotonic();
    let stop = () => {};
    const arm = (ms: number) => {
      stop = clock.after(ms, () => {
        const leftMs = everyMs - (clock.monotonic() - writtenAtMs);
        if (leftMs > 0) return arm(leftMs);
        write();
        writtenAtMs = clock.monotonic();
        arm(everyMs);
      });
    };
    arm(everyMs);
    const note = () => {
      writtenAtMs = clock.monotonic();
    };
    return { note, [Symbol.dispose]: () => stop() };
  }

  #refuse(wire: Wire | undefined, response: ServerResponse, error: unknown): void {
    if (error instanceof ClientGone || response.destroyed) return void response.destroy();
    if (!(error instanceof GatewayError)) this.#options.log.warn('gateway-request-failed', { error: stackOf(error) });
    const known = error instanceof GatewayError ? error : new GatewayError('failed', messageOf(error));
    // The status of a reply that has begun with white space was 200: a broken connection is the error that every client knows.
    if (response.headersSent && response.getHeader('content-type') === jsonType) return void response.destroy();
    if (response.headersSent) return void response.end(wire?.toStreamError(known));
    if (known.status === 429) response.setHeader('retry-after', '1');
    sendJson(response, known.status, wire ? wire.toError(known) : { error: { message: known.message, code: known.kind } });
  }

  get #nowS(): number {
    return Math.floor(this.#options.clock.now() / 1000);
  }
}

class ClientGone extends Error {}

function readUrl(text: string): URL {
  const url = URL.parse(text, 'http://gateway');
  if (url !== null && isDecodable(url.pathname)) return url;
  throw new GatewayError('invalid', `${text.slice(0, 200)} is not an address`);
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false; // a % without its two digits
  }
}

const gatewayVerdict = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('reward'), reward: z.number(), score: z.record(z.string(), z.unknown()) }),
  z.object({ kind: z.literal('discard'), reason: z.string() }),
]);

/** How a caller ends a gateway. */
export type GatewayVerdict = z.infer<typeof gatewayVerdict>;

/** Only the server of the service knows the secret: an agent cannot give itself a reward. */
async function end(gateway: HostedGateway, request: IncomingMessage, response: ServerResponse): Promise<void> {
  checkSecret(gateway.controlDigest, String(request.headers['x-gateway-control'] ?? ''));
  gateway.end(gatewayVerdict.parse(await readBody(request)));
  sendJson(response, 202, {});
}

interface GatewayCall {
  readonly gateway: HostedGateway;
  readonly found: FoundWire;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly load: GatewayLoad;
}

/** What a gateway takes of its worker at this moment. */
interface GatewayLoad {
  requests: number;
  bytes: number;
}

/** Each wire has its own place for a key. */
function checkKey({ keyDigest }: HostedGateway, { headers }: IncomingMessage, { searchParams }: URL): void {
  const [, bearer] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  const shown = bearer ?? headers['x-api-key'] ?? headers['x-goog-api-key'] ?? searchParams.get('key') ?? '';
  checkSecret(keyDigest, String(shown));
}

function checkSecret(known: string, shown: string): void {
  const digest = createHash('sha256').update(shown).digest();
  if (!timingSafeEqual(digest, Buffer.from(known, 'hex'))) throw new GatewayError('unauthorized', 'the key is not the key of this gateway');
}

async function readBody(request: IncomingMessage, load: GatewayLoad = { requests: 1, bytes: 0 }): Promise<unknown> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request) {
      length += chunk.length;
      load.bytes += chunk.length;
      if (length > mostBodyBytes) throw new GatewayError('too-large', `the body has more than ${mostBodyBytes} bytes`);
      if (load.bytes > mostBytes) throw new GatewayError('busy', `the bodies of this gateway have more than ${mostBytes} bytes`);
      chunks.push(chunk);
    }
  } finally {
    load.bytes -= length;
  }
  const value = tryJson(Buffer.concat(chunks).toString('utf8'));
  if (value === undefined) throw new GatewayError('invalid', 'the body is not valid JSON');
  return value;
}

const jsonType = 'application/json';

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.statusCode = status;
  beginJson(response).end(JSON.stringify(body));
}

/** Of a reply that has not begun. */
function beginJson(response: ServerResponse): ServerResponse {
  return response.headersSent ? response : response.setHeader('content-type', jsonType);
}

function toModels(model: string, created: number) {
  return { object: 'list', data: [{ id: model, object: 'model', created, owned_by: 'millrace' }] };
}
