// A process of workers without sandboxes and backends that run whole rollouts, one after the other, as fast as their store answers. Each has
// its own handle, as a process of workers has: on the database, or on the servers.

import { type WorkerId, workerId } from '@millrace/protocol';
import { makeReport, makeResult, makeTrajectory } from '@millrace/testkit';
import { systemClock } from '../../packages/base/src/clock.ts';
import { silentLog } from '../../packages/base/src/log.ts';
import type { Claim } from '../../packages/store/src/claim.ts';
import { openStore } from '../../packages/store/src/open/open-store.ts';
import { openRemoteStore } from '../../packages/store/src/remote/remote-store.ts';
import type { WorkerStore } from '../../packages/store/src/worker-store.ts';

export interface CostOrder {
  readonly workers: number;
  readonly rollouts: number;
  /** The servers, or the database. */
  readonly servers?: readonly string[];
  readonly address?: string;
  /** A name that no other order had. */
  readonly name: string;
}

export interface CostAnswer {
  readonly ended: number;
  readonly calls: number;
}

const leaseMs = 60_000;
/** Six looks in the life of a rollout, in three of which seven turns are written. */
const looks = 6;
const turnsTogether = 7;

if (import.meta.main) {
  process.on('message', (order: CostOrder) => void run(order).then((answer) => process.send?.(answer)));
  process.once('disconnect', () => process.exit());
}

async function run({ workers, rollouts, servers, address = '', name }: CostOrder): Promise<CostAnswer> {
  const left = { rollouts, ended: 0, calls: 0 };
  const open = async () =>
    servers
      ? openRemoteStore({ servers, log: silentLog })
      : await openStore(address, { clock: systemClock, log: silentLog, hints: 'work' });
  // They stay open: what a process of the database used is known while it runs.
  const stores: WorkerStore[] = [];
  for (let index = 0; index < workers; index += 1) stores.push(await open());
  await Promise.all(stores.map((store, index) => work(store, workerId.parse(`${name}-${index}`), left)));
  return { ended: left.ended, calls: left.calls };
}

async function work(store: WorkerStore, worker: WorkerId, left: { rollouts: number; ended: number; calls: number }): Promise<void> {
  await store.registerWorker({ id: worker, host: worker, pid: process.pid }, { leaseMs });
  while (left.rollouts > 0) {
    left.rollouts -= 1;
    const [claim] = await store.claim(worker, 1);
    left.calls += 1;
    if (claim === undefined) continue;
    left.calls += await live(store, claim);
    left.ended += 1;
  }
}

/** Returns the number of its calls. */
async function live(store: WorkerStore, { id, worker, attempt }: Claim): Promise<number> {
  const claim = { id, worker, attempt };
  for (const to of ['ready', 'run'] as const) await store.move(claim, to);
  await store.place(claim, {});
  const data = { turn: 1, sampled_tokens: 100, context_tokens: 8_000, model_ms: 1_000, tool_ms: 10, calls: 1 };
  const turns = Array.from({ length: turnsTogether }, () => ({ kind: 'turn-end' as const, rolloutId: id, workerId: worker, data }));
  for (let look = 0; look < looks; look += 1) {
    if (look % 2 === 0)
      await Promise.all([store.appendEvents(turns), store.noteTraffic({ contexts: [{ claim, tokens: 1_000 * (look + 1) }], errors: [] })]);
    const held = look === 0 ? { held: { claims: [claim], maxLosses: 10 } } : {};
    await Promise.all([
      store.renew(worker, { leaseMs, report: makeReport(1), ...held }),
      store.reportGate(worker, { pause: 0, generating: 1 }),
    ]);
  }
  await store.move(claim, 'evaluate');
  const ending = { state: 'done', result: makeResult(1), trajectory: makeTrajectory(id, attempt) } as const;
  if (!(await store.finish(claim, ending))) throw new Error(`${id} is fenced`);
  return 5 + looks * 3;
}
