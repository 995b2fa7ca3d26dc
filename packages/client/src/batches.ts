// Batches as a trainer uses them: create one, and iterate its groups as they are delivered. A consumer that acknowledges sees each
// group once, across any number of restarts of itself and of the service.

import { randomUUID } from 'node:crypto';
import {
  ackReply,
  type BatchInput,
  type BatchState,
  type BatchView,
  batchList,
  batchView,
  definedOf,
  fromBinaryGroups,
  type GroupView,
  groupsMediaType,
  type LostTrajectory,
  routes,
  type Trajectory,
  toPath,
} from '@millrace/protocol';
import { type ApiCall, type CallOptions, type Transport, toReadError } from './transport.ts';

export interface DeliveredGroup {
  readonly group: GroupView;
  /** In the order of `group.rollouts`. */
  readonly trajectories: readonly Trajectory[];
  /** Rollouts that are not in `group`, because the service could not read their trajectories. */
  readonly lost: readonly LostTrajectory[];
}

export interface GroupsOptions extends CallOptions {
  /** Starts after the last acknowledgement of this consumer. */
  readonly consumer?: string;
  /** Starts after this `seq`, regardless of acknowledgements. */
  readonly after?: number;
  /** With a consumer: acknowledges each group when the next one is requested. Default: true. */
  readonly ack?: boolean;
}

export interface Batches {
  /** Safe to repeat with the same id; makes an id if there is none. */
  create(batch: BatchInput, options?: CallOptions): Promise<BatchView>;
  get(id: string, options?: CallOptions): Promise<BatchView>;
  /** Resolves when the batch is over. */
  wait(id: string, options?: CallOptions): Promise<BatchView>;
  /** Oldest first. */
  list(options?: CallOptions & { readonly state?: BatchState; readonly series?: string }): AsyncIterable<BatchView>;
  appendTasks(
    id: string,
    tasks: readonly Record<string, unknown>[],
    options?: CallOptions & { readonly closed?: boolean },
  ): Promise<BatchView>;
  /** Every delivered group with its trajectories, by `seq`. Ends when the batch is over and all groups are read. */
  groups(id: string, options?: GroupsOptions): AsyncIterable<DeliveredGroup>;
  /** Returns the `seq` through which the consumer has acknowledged. */
  ack(id: string, consumer: string, through: number, options?: CallOptions): Promise<number>;
  /** Ends the pause of a batch whose groups failed without blame on their tasks. */
  resume(id: string, options?: CallOptions): Promise<BatchView>;
  cancel(id: string, options?: CallOptions): Promise<BatchView>;
}

const pollSeconds = 25;
const groupsPerPage = 16;

export function openBatches(transport: Transport): Batches {
  const { createBatch, getBatch, appendTasks, ackGroups, resumeBatch } = routes;
  const one = (id: string) => toPath(getBatch.path, { id });
  const get = (id: string, callOptions: CallOptions = {}) => transport.json({ method: 'GET', path: one(id), ...callOptions }, batchView);
  const ack: Batches['ack'] = async (id, consumer, through, callOptions = {}) => {
    const call = { method: 'POST', path: toPath(ackGroups.path, { id }), body: { consumer, through }, ...callOptions } as const;
    return (await transport.json(call, ackReply)).through;
  };
  return {
    create: (batch, callOptions = {}) =>
      transport.json({ method: 'POST', path: createBatch.path, body: { id: `b-${randomUUID()}`, ...batch }, ...callOptions }, batchView),
    get,
    async wait(id, callOptions = {}) {
      const poll = { method: 'GET', path: one(id), query: { wait: pollSeconds }, waitMs: pollSeconds * 1000, ...callOptions } as const;
      for (;;) {
        const view = await transport.json(poll, batchView);
        if (view.state !== 'open') return view;
      }
    },
    list: (options) => listBatches(transport, options ?? {}),
    appendTasks: (id, tasks, { closed = false, ...callOptions } = {}) =>
      transport.json(
        { method: 'POST', path: toPath(appendTasks.path, { id }), body: { key: randomUUID(), tasks, closed }, ...callOptions },
        batchView,
      ),
    groups: (id, { ack: acknowledges = true, ...options } = {}) =>
      readGroups(transport, id, { ...options, ...definedOf({ ack: acknowledges ? ack : undefined }) }),
    ack,
    resume: (id, callOptions = {}) => transport.json({ method: 'POST', path: toPath(resumeBatch.path, { id }), ...callOptions }, batchView),
    cancel: (id, callOptions = {}) => transport.json({ method: 'DELETE', path: one(id), ...callOptions }, batchView),
  };
}

async function* listBatches(
  transport: Transport,
  { signal, ...filter }: CallOptions & { readonly state?: BatchState; readonly series?: string },
): AsyncGenerator<BatchView> {
  let after: string | undefined;
  do {
    const query = { limit: 100, ...filter, after };
    const call = { method: 'GET', path: routes.listBatches.path, query, ...definedOf({ signal }) } as const;
    const page = await transport.json(call, batchList);
    yield* page.batches;
    after = page.next ?? undefined;
  } while (after !== undefined);
}

/** Acknowledges a group when the caller requests the next one, that is, when the body of its loop is done with it. */
async function* readGroups(
  transport: Transport,
  id: string,
  options: Omit<GroupsOptions, 'ack'> & { readonly ack?: Batches['ack'] },
): AsyncGenerator<DeliveredGroup> {
  const { consumer, signal } = options;
  const callOptions = definedOf({ signal });
  let after = options.after;
  for (;;) {
    const query = { wait: pollSeconds, limit: groupsPerPage, after, consumer };
    const { page, trajectories, lost } = await readPage(transport, toPath(routes.readGroups.path, { id }), { query, ...callOptions });
    for (const [index, group] of page.groups.entries()) {
      yield { group, trajectories: trajectories[index] ?? [], lost: lost[index] ?? [] };
      if (consumer !== undefined) await options.ack?.(id, consumer, group.seq, callOptions);
    }
    if (page.groups.length === 0 && page.state !== 'open') return;
    after = page.next;
  }
}

async function readPage(
  transport: Transport,
  path: string,
  call: CallOptions & Pick<ApiCall, 'query'>,
): Promise<ReturnType<typeof fromBinaryGroups>> {
  const bytes = await transport.bytes({ method: 'GET', path, headers: { accept: groupsMediaType }, waitMs: pollSeconds * 1000, ...call });
  try {
    return fromBinaryGroups(bytes);
  } catch (cause) {
    throw toReadError(path, cause);
  }
}
