// The routes of gateways. A gateway is a rollout whose agent runs elsewhere: the worker that holds it answers the agent's requests, and
// this server passes them on, byte by byte.

import { randomBytes, randomUUID } from 'node:crypto';
import { sleep } from '@millrace/base/clock';
import { definedOf, isTerminal, messageOf, RolloutError, type RolloutId, rolloutId, routes } from '@millrace/protocol';
import { gatewayScenarioName, gatewayTask } from '@millrace/scenarios';
import { type RolloutRecord, toRolloutView } from '@millrace/store';
import { toSecretDigest } from '@millrace/worker';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Agent, request as send } from 'undici';
import { type AppContext, closedSignal } from '../context/context.ts';
import { checkIntake, submitAll, toNewRollout, toRolloutId, unknownRollout } from '../intake/intake.ts';
import { callerOf, gatewayPaths } from '../request/auth.ts';
import { mount, type RouteInput } from '../request/mount.ts';
import { waitForEnd } from './rollout-routes.ts';

/** How long a request waits for a worker to take the gateway. */
const longestStartMs = 60_000;
const startPollMs = 50;
/** How long a reward waits for its rollout to be stored. */
const longestEndMs = 30_000;

export function mountGateways(app: FastifyInstance, context: AppContext): void {
  const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
  const places = new GatewayPlaces(context);
  app.addHook('onClose', async () => agent.destroy());
  mount(app, routes.openGateway, (input) => openGateway(input, context));
  mount(app, routes.getGateway, async ({ params: { id }, query: { wait }, reply }) => {
    const record = await waitForEnd(id, { ms: wait * 1000, signal: closedSignal(reply) }, context);
    return toRolloutView(requireGateway(id, record));
  });
  mount(app, routes.rewardGateway, async ({ params: { id }, body: { reward, score = {}, discard }, reply }) => {
    const verdict = reward === undefined ? { kind: 'discard', reason: discard } : { kind: 'reward', reward, score };
    const { url, control } = await places.find(id, closedSignal(reply));
    const { statusCode, body } = await send(`${url}/${encodeURIComponent(id)}/control`, {
      method: 'POST',
      dispatcher: agent,
      headers: { 'x-gateway-control': control, 'content-type': 'application/json' },
      body: JSON.stringify(verdict),
    });
    if (statusCode !== 202) throw new RolloutError('conflict', `gateway ${id} cannot be ended: ${await body.text()}`);
    await body.dump();
    return toRolloutView(requireGateway(id, await waitForEnd(id, { ms: longestEndMs, signal: closedSignal(reply) }, context)));
  });
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
    for (const url of gatewayPaths) scope.all(url, (request, reply) => pass(request, reply, { places, agent }));
  });
}

async function openGateway({ body, request }: RouteInput<typeof routes.openGateway>, context: AppContext) {
  checkIntake(context);
  const { id = toRolloutId(`g-${randomUUID()}`), allow, reward_rule, idle_timeout_s, limits, ...rest } = body;
  const [key, control] = [`mrg-${randomBytes(24).toString('base64url')}`, randomBytes(24).toString('base64url')];
  const task = { key_sha256: toSecretDigest(key), control, allow, reward_rule, idle_timeout_s };
  // Another worker cannot continue it: nothing is tried again.
  const submission = { ...rest, scenario: gatewayScenarioName, task, limits: { ...limits, max_retries: 0 } };
  await submitAll([toNewRollout(id, submission)], context, callerOf(request, context.config));
  const root_url = `${request.protocol}://${request.host}/v1/gateways/${encodeURIComponent(id)}`;
  return { id, key, base_url: `${root_url}/v1`, root_url };
}

interface GatewayPlace {
  readonly url: string;
  readonly control: string;
}

/** Where the worker of each gateway takes its requests. */
class GatewayPlaces {
  readonly #context: AppContext;
  readonly #known = new Map<string, GatewayPlace>();

  constructor(context: AppContext) {
    this.#context = context;
  }

  /** Waits for a worker that has just been given it. */
  async find(id: RolloutId, signal: AbortSignal): Promise<GatewayPlace> {
    const known = this.#known.get(id);
    if (known) return known;
    const { store, clock } = this.#context;
    for (const startedAt = clock.monotonic(); clock.monotonic() - startedAt < longestStartMs; ) {
      const record = requireGateway(id, await store.get(id));
      if (isTerminal(record.state)) throw new RolloutError('conflict', `gateway ${id} has ended as ${record.state}`);
      const worker = record.state === 'run' ? (await store.workers()).find((one) => one.id === record.worker) : undefined;
      const url = worker?.report?.gateway_url;
      if (url !== undefined) {
        const place = { url, control: gatewayTask.parse(record.submission.task).control };
        this.#known.set(id, place);
        return place;
      }
      await sleep(startPollMs, { clock, signal });
    }
    throw new RolloutError('not-running', `no worker has taken gateway ${id} yet`, { details: { retry_after_ms: 5000 } });
  }

  forget(id: RolloutId): void {
    this.#known.delete(id);
  }
}

function requireGateway(id: RolloutId, record: RolloutRecord | undefined): RolloutRecord {
  if (record?.submission.scenario === gatewayScenarioName) return record;
  throw unknownRollout(id);
}

/** The worker checks the key and answers in the shape of the wire. What keeps the request from a worker is answered in ours. */
async function pass(
  request: FastifyRequest,
  reply: FastifyReply,
  { places, agent }: { readonly places: GatewayPlaces; readonly agent: Agent },
): Promise<FastifyReply> {
  const id = rolloutId.parse((request.params as { readonly id: string }).id);
  const signal = closedSignal(reply);
  const { url } = await places.find(id, signal);
  const path = request.url.replace(/^\/v1\/gateways\//, '/');
  const { host: _, connection: __, 'transfer-encoding': ___, ...headers } = request.headers;
  const body = request.method === 'GET' || request.method === 'HEAD' ? undefined : request.raw;
  try {
    const answer = await send(`${url}${path}`, {
      method: request.method as 'GET',
      dispatcher: agent,
      headers: definedOf(headers) as Record<string, string>,
      signal,
      ...definedOf({ body }),
    });
    if (answer.statusCode === 410) places.forget(id);
    const type = answer.headers['content-type'];
    const retry = answer.headers['retry-after'];
    reply.status(answer.statusCode).headers(definedOf({ 'content-type': type, 'retry-after': retry }) as Record<string, string>);
    return reply.send(answer.body);
  } catch (error) {
    places.forget(id);
    throw new RolloutError('not-running', `the worker of gateway ${id} does not answer: ${messageOf(error)}`, {
      details: { retry_after_ms: 1000 },
    });
  }
}
