// An in-memory service with the rollout, event and status routes over real HTTP, and faults on request. A rollout ends only when the
// test ends it.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type Event,
  isTerminal,
  RolloutError,
  type RolloutView,
  rolloutView,
  type ServiceStatus,
  serviceStatus,
  type Trajectory,
  toBinary,
  toErrorBody,
} from '@millrace/protocol';
import { type Client, openClient } from '../src/client.ts';

type RequestHandler = (request: IncomingMessage, response: ServerResponse, body: string) => boolean;

export class FakeService {
  readonly rollouts = new Map<string, RolloutView>();
  readonly events: Event[] = [];
  readonly requests: string[] = [];
  readonly trajectories = new Map<string, Trajectory>();
  readonly streams = new Set<ServerResponse>();
  /** Handles the request itself when it returns true. */
  fault: RequestHandler = () => false;
  onSubmit: (ids: readonly string[]) => void = () => {};
  onCancel: (id: string) => void = () => {};
  #server: Server | undefined;
  #waiting = new Set<() => void>();

  static async open(): Promise<FakeService> {
    const service = new FakeService();
    await service.start(0);
    return service;
  }

  get port(): number {
    const address = this.#server?.address() as AddressInfo;
    return address.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async start(port: number): Promise<void> {
    this.#server = createServer((request, response) => void this.#handle(request, response));
    await new Promise<void>((resolve) => this.#server?.listen(port, '127.0.0.1', resolve));
  }

  breakConnections(): void {
    this.#server?.closeAllConnections();
  }

  /** Like kill -9: connections break, and the state is there for the next start. */
  async stop(): Promise<void> {
    this.#server?.closeAllConnections();
    this.streams.clear();
    await new Promise((resolve) => this.#server?.close(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  add(id: string, more: Partial<Record<string, unknown>> = {}): void {
    const base = { id, scenario: 'math', group: null, state: 'queued', attempt: 0, retries: 0, losses: 0, worker: null, reward: null };
    const rest = { result: null, failure: null, failures: [], created_at: '2026-01-01T00:00:00Z', ended_at: null, metadata: null };
    this.rollouts.set(id, rolloutView.parse({ ...base, ...rest, ...more }));
  }

  end(id: string, more: Partial<Record<string, unknown>> = {}, { quietly = false } = {}): void {
    this.add(id, { state: 'done', reward: 1, ended_at: '2026-01-01T00:00:09Z', ...more });
    const { state, reward, failure } = this.rollouts.get(id) as RolloutView;
    if (!quietly) this.emit({ kind: 'rollout-end', rollout_id: id, data: { state, reward, blame: failure?.blame } });
    for (const wake of this.#waiting) wake();
  }

  emit(event: Record<string, unknown>): void {
    const whole = { id: this.events.length + 1, at: '2026-01-01T00:00:09Z', data: {}, ...event } as unknown as Event;
    this.events.push(whole);
    for (const stream of this.streams) stream.write(toFrame(whole));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of request) body += chunk;
    this.requests.push(`${request.method} ${request.url}`);
    if (this.fault(request, response, body)) return;
    try {
      await this.#route(request, response, body);
    } catch (error) {
      if (!(error instanceof RolloutError)) throw error;
      send(response, error.status, toErrorBody(error));
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse, body: string): Promise<void> {
    const url = new URL(request.url ?? '', 'http://localhost');
    const [, id, part] = /^\/v1\/rollouts\/([^/]+)(\/trajectory)?$/.exec(url.pathname) ?? [];
    if (url.pathname === '/v1/status') return send(response, 200, this.status());
    if (url.pathname === '/v1/events') return this.#stream(request, response);
    if (url.searchParams.get('check') === 'true') return send(response, 200, { rollouts: [] });
    if (url.pathname === '/v1/rollouts' && request.method === 'POST') return send(response, 202, this.#submit(JSON.parse(body)));
    if (url.pathname === '/v1/rollouts') return send(response, 200, this.#page(url.searchParams));
    if (id === undefined) throw new RolloutError('not-found', `no route ${url.pathname}`);
    if (request.method === 'DELETE') return send(response, 200, { id, cancel: this.#cancel(id) });
    if (part !== undefined) return void response.end(toBinary(this.#trajectory(id)));
    if (url.searchParams.has('wait')) await this.#ended(id);
    send(response, 200, this.#get(id));
  }

  #get(id: string): RolloutView {
    const view = this.rollouts.get(id);
    if (view === undefined) throw new RolloutError('not-found', `no rollout ${id}`);
    return view;
  }

  #trajectory(id: string): Trajectory {
    const trajectory = this.trajectories.get(id);
    if (trajectory === undefined) throw new RolloutError('not-found', `rollout ${id} has no trajectory`);
    return trajectory;
  }

  #submit({ rollouts }: { rollouts: { id: string; scenario: string }[] }): unknown {
    const accepted = rollouts.map(({ id, scenario }) => {
      const created = !this.rollouts.has(id);
      if (created) this.add(id, { scenario });
      return { id, state: this.#get(id).state, created };
    });
    this.onSubmit(rollouts.map((one) => one.id));
    return { rollouts: accepted };
  }

  #cancel(id: string): string {
    this.onCancel(id);
    const view = this.rollouts.get(id);
    if (view !== undefined && isTerminal(view.state)) return 'ended';
    if (view !== undefined) this.end(id, { state: 'cancelled', reward: null });
    return 'cancelled';
  }

  /** At most two rollouts. */
  #page(query: URLSearchParams): unknown {
    const all = [...this.rollouts.values()].filter(({ id }) => id.startsWith(query.get('prefix') ?? ''));
    const from = Number(query.get('after') ?? 0);
    const to = from + Math.min(2, Number(query.get('limit')));
    return { rollouts: all.slice(from, to), next: to < all.length ? String(to) : null };
  }

  async #ended(id: string): Promise<void> {
    if (isTerminal(this.#get(id).state)) return;
    await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  #stream(request: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(': open\n\n');
    for (const event of this.events) if (event.id > Number(request.headers['last-event-id'])) response.write(toFrame(event));
    this.streams.add(response);
    response.on('close', () => this.streams.delete(response));
  }

  status(): ServiceStatus {
    const rollouts = { queued: 0, init: 0, ready: 0, run: 0, evaluate: 0, done: 0, failed: 0, cancelled: 0 };
    for (const view of this.rollouts.values()) rollouts[view.state] += 1;
    const lag = { p50: 0, p99: 0, max: 0 };
    const policy = { state: 'running', mode: null, policy_version: 0, generating: 0, since: '2026-01-01T00:00:00Z' };
    const recent = { seconds: 60, ended: 0, failed: 0, rewarded: 0, mean_reward: null };
    const parts = { workers: [], backends: [], policy, batches: [], recent, hints: [], tokens_per_s: 0 };
    return serviceStatus.parse({ rollouts, ...parts, last_event_id: this.events.length, loop_lag_ms: lag, rss_bytes: 1 << 26 });
  }
}

/** A service and a client of it, for the time of the work. */
export async function withBoth(work: (service: FakeService, client: Client) => Promise<void>): Promise<void> {
  await using service = await FakeService.open();
  await using client = openClient({ url: service.url, timeoutMs: 5000 });
  await work(service, client);
}

function toFrame(event: Event): string {
  return `id: ${event.id}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;
}

export function send(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}
