// The backend routes: join, list, drain, leave.

import { createHash } from 'node:crypto';
import type { BackendProbe, NewBackend } from '@millrace/engines';
import {
  type BackendId,
  type BackendView,
  backendId,
  definedOf,
  dialects,
  type JoinRequest,
  messageOf,
  RolloutError,
  routes,
} from '@millrace/protocol';
import type { FastifyInstance } from 'fastify';
import { toBackendView } from '../context/backend-view.ts';
import type { AppContext } from '../context/context.ts';
import { isAlive } from '../context/status.ts';
import { mount } from '../request/mount.ts';

export function mountBackends(app: FastifyInstance, context: AppContext): void {
  const { store } = context;
  mount(app, routes.joinBackend, async ({ body }) => {
    const { id, url } = await joinBackend(body, context);
    const backends = await viewBackends(context);
    const notes = [
      ...(url === trimSlashes(body.url) ? [] : [`joined as ${url}: the base address, without /v1`]),
      ...noteModels(id, backends),
    ];
    return { ...findBackend(backends, id), note: notes.join('; ') || null };
  });
  mount(app, routes.listBackends, async () => ({ backends: await viewBackends(context) }));
  mount(app, routes.drainBackend, async ({ params: { id } }) => {
    if (!(await store.drainBackend(id))) throw unknownBackend(id);
    return viewBackend(id, context);
  });
  mount(app, routes.leaveBackend, async ({ params: { id } }) => {
    if (!(await store.leaveBackend(id))) throw unknownBackend(id);
    return { id };
  });
}

/** A server that does not work yet joins too, as broken: trainers start servers in any order. */
export async function joinBackend(join: JoinRequest, { store, log, probe }: AppContext): Promise<NewBackend> {
  const asked = toNewBackend(join);
  const known = (await store.backends()).find(({ id }) => id === asked.id);
  const chosen = join.dialect === undefined && known !== undefined ? { ...asked, dialect: known.dialect } : asked;
  const { backend, ...found } = await probeAs(chosen, probe, { isFree: join.dialect === undefined });
  if (found.error !== undefined) log.warn('backend-join-broken', { backend: backend.id, error: found.error });
  if (backend.url !== trimSlashes(join.url)) log.info('backend-address-changed', { backend: backend.id, from: join.url, to: backend.url });
  await store.joinBackend({ ...backend, ...found });
  return backend;
}

interface Probed {
  readonly backend: NewBackend;
  readonly probe?: BackendProbe;
  /** Why it cannot be used. */
  readonly error?: string;
}

/** Asks the server what it is. If the dialect is free, it becomes the one of its engine. */
export async function probeAs(
  backend: NewBackend,
  probe: (backend: NewBackend) => Promise<BackendProbe>,
  { isFree }: { readonly isFree: boolean },
): Promise<Probed> {
  try {
    const found = await probe(backend);
    return definedOf({ backend, probe: found, error: found.tokenizer === 'different' ? found.tokenizerReason : undefined });
  } catch (error) {
    const right = dialects.find((dialect) => error instanceof RolloutError && dialect === error.details?.dialect);
    if (isFree && right !== undefined) return await probeAs({ ...backend, dialect: right }, probe, { isFree: false });
    return { backend, error: messageOf(error).slice(0, 500) };
  }
}

function trimSlashes(url: string): string {
  return url.replace(/\/+$/, '');
}

/** Users of OpenAI clients write …:8000/v1; the adapters add the whole route. */
export function toNewBackend(join: JoinRequest): NewBackend {
  const url = trimSlashes(trimSlashes(join.url).replace(/\/v1$/, ''));
  return {
    id: join.id ?? toBackendId(url),
    url,
    dialect: join.dialect ?? 'vllm',
    state: 'up',
    ...definedOf({
      policyVersion: join.policy_version,
      model: join.model,
      apiKey: join.api_key,
      logprobsMode: join.logprobs_mode === 'unknown' ? undefined : join.logprobs_mode,
    }),
  };
}

/** Host and port if they identify the address; otherwise with a digest, so that two addresses never share an id. */
function toBackendId(url: string): BackendId {
  const { host, pathname, protocol } = new URL(url);
  const plain = backendId.safeParse(host);
  if (plain.success && pathname === '/' && protocol === 'http:') return plain.data;
  const readable = host.replace(/[^A-Za-z0-9.:-]/g, '').slice(0, 80);
  return backendId.parse(`b-${readable}-${createHash('sha256').update(url).digest('hex').slice(0, 12)}`);
}

async function viewBackends({ store, clock }: AppContext) {
  const [backends, loads, all] = await Promise.all([store.backends(), store.backendLoads(), store.workers()]);
  const workers = all.filter((worker) => isAlive(worker, clock));
  return backends.map((backend) => toBackendView(backend, { loads, workers }));
}

async function viewBackend(id: BackendId, context: AppContext) {
  return findBackend(await viewBackends(context), id);
}

function findBackend(backends: readonly BackendView[], id: BackendId): BackendView {
  const view = backends.find((backend) => backend.id === id);
  if (view === undefined) throw unknownBackend(id);
  return view;
}

/** Every rollout may be placed on any backend, so all should serve the same model. */
function noteModels(id: BackendId, backends: readonly BackendView[]): string[] {
  const model = findBackend(backends, id).probe?.model;
  const other = backends.find(({ id: its, state, probe }) => its !== id && state === 'up' && probe?.model && probe.model !== model);
  if (!model || !other) return [];
  return [`it serves ${model} and ${other.id} serves ${other.probe?.model}: rollouts are placed on both, so use a service for each model`];
}

function unknownBackend(id: BackendId): RolloutError {
  return new RolloutError('not-found', `there is no backend ${id}`);
}
