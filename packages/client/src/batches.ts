// Batches from a trainer's side: begin one, and iterate its groups as they are delivered. A consumer that acknowledges sees each
// group once over any number of restarts, its own or the service's.

import { randomUUID } from 'node:crypto';
import {
  ackReply,
  type BatchInput,
  type BatchState,
  type BatchView,
  batchList,
  batchView,
  fromBinaryGroups,
  type GroupView,
  groupsMediaType,
  messageOf,
  RolloutError,
  routes,
  type Trajectory,
  toPath,
} from '@millrace/protocol';
import type { Transport } from './transport.ts';

interface Waiting {
  readonly signal?: AbortSignal;
}

export interface DeliveredGroup {
  readonly group: GroupView;
  /** In the order of the group's rollouts. */
  readonly trajectories: readonly Trajectory[];
}

export interface GroupsOptions extends Waiting {
  /** Begins after this consumer's last acknowledgement. */
  readonly consumer?: string;
  /** Begins after this `seq`, whatever was acknowledged. */
  readonly after?: number;
  /** With a consumer: whether each group is acknowledged when the next one is asked for; true unless told. */
  readonly ack?: boolean;
}

export interface Batches {
  /** Repeating it with the same id changes nothing; an id is made where there is none. */
  create(batch: BatchInput, options?: Waiting): Promise<BatchView>;
  get(id: string, options?: Waiting): Promise<BatchView>;
  /** Resolves when the batch is over. */
  wait(id: string, options?: Waiting): Promise<BatchView>;
  /** In the order of their beginning. */
  list(options?: Waiting & { readonly state?: BatchState; readonly series?: string }): AsyncIterable<BatchView>;
  appendTasks(id: string, tasks: readonly Record<string, unknown>[], options?: Waiting & { readonly closed?: boolean }): Promise<BatchView>;
  /** Each delivered group in the order of its place, with its trajectories; ends when the batch is over and all were given. */
  groups(id: string, options?: GroupsOptions): AsyncIterable<DeliveredGroup>;
  /** Answers how far the consumer is now. */
  ack(id: string, consumer: string, through: number, options?: Waiting): Promise<number>;
  cancel(id: string, options?: Waiting): Promise<BatchView>;
}

const pollSeconds = 25;
const groupsPerPage = 16;

export function openBatches(transport: Transport): Batches {
  const { createBatch, getBatch, appendTasks, ackGroups } = routes;
  const one = (id: string) => toPath(getBatch.path, { id });
  const get = (id: string, waiting: Waiting = {}) => transport.json({ method: 'GET', path: one(id), ...waiting }, batchView);
  const ack: Batches['ack'] = async (id, consumer, through, waiting = {}) => {
    const call = { method: 'POST', path: toPath(ackGroups.path, { id }), body: { consumer, through }, ...waiting } as const;
    return (await transport.json(call, ackReply)).through;
  };
  return {
    create: (batch, waiting = {}) =>
      transport.json({ method: 'POST', path: createBatch.path, body: { id: `b-${randomUUID()}`, ...batch }, ...waiting }, batchView),
    get,
    async wait(id, waiting = {}) {
      const poll = { method: 'GET', path: one(id), query: { wait: pollSeconds }, waitMs: pollSeconds * 1000, ...waiting } as const;
      for (;;) {
        const view = await transport.json(poll, batchView);
        if (view.state !== 'open') return view;
      }
    },
    list: (options) => listBatches(transport, options ?? {}),
    appendTasks: (id, tasks, { closed = false, ...waiting } = {}) =>
      transport.json(
        { method: 'POST', path: toPath(appendTasks.path, { id }), body: { key: randomUUID(), tasks, closed }, ...waiting },
        batchView,
      ),
    groups: (id, { ack: acknowledges = true, ...options } = {}) =>
      readGroups(transport, id, { ...options, ...(acknowledges ? { ack } : {}) }),
    ack,
    cancel: (id, waiting = {}) => transport.json({ method: 'DELETE', path: one(id), ...waiting }, batchView),
  };
}

async function* listBatches(
  transport: Transport,
  { signal, ...filter }: Waiting & { readonly state?: BatchState; readonly series?: string },
): AsyncGenerator<BatchView> {
  let after: string | undefined;
  do {
    const query = { limit: 100, ...filter, ...(after === undefined ? {} : { after }) };
    const call = { method: 'GET', path: routes.listBatches.path, query, ...(signal === undefined ? {} : { signal }) } as const;
    const page = await transport.json(call, batchList);
    yield* page.batches;
    after = page.next ?? undefined;
  } while (after !== undefined);
}

/** A group counts as stored when the loop's body has ended, which is when the next one is asked for. */
async function* readGroups(
  transport: Transport,
  id: string,
  options: Omit<GroupsOptions, 'ack'> & { readonly ack?: Batches['ack'] },
): AsyncGenerator<DeliveredGroup> {
  const { consumer, signal } = options;
  const waiting = signal === undefined ? {} : { signal };
  let after = options.after;
  for (;;) {
    const query = {
      wait: pollSeconds,
      limit: groupsPerPage,
      ...(after === undefined ? {} : { after }),
      ...(consumer === undefined ? {} : { consumer }),
    };
    const { page, trajectories } = await readPage(transport, toPath(routes.readGroups.path, { id }), { query, ...waiting });
    for (const [index, group] of page.groups.entries()) {
      yield { group, trajectories: trajectories[index] ?? [] };
      if (consumer !== undefined) await options.ack?.(id, consumer, group.seq, waiting);
    }
    if (page.groups.length === 0 && page.state !== 'open') return;
    after = page.next;
  }
}

async function readPage(
  transport: Transport,
  path: string,
  call: Waiting & { readonly query: Readonly<Record<string, string | number>> },
): Promise<ReturnType<typeof fromBinaryGroups>> {
  const bytes = await transport.bytes({ method: 'GET', path, headers: { accept: groupsMediaType }, waitMs: pollSeconds * 1000, ...call });
  try {
    return fromBinaryGroups(bytes);
  } catch (cause) {
    const seen = messageOf(cause);
    throw new RolloutError('internal', `GET ${path} answered what this client cannot read: ${seen}`, { cause });
  }
}
