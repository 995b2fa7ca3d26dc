// The order of the log while those who number it die: what a reader saw stays, in one order without gaps, and every durable event is seen
// once, whatever happens to the process with the duty and to the database.

import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { after, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import type { Event } from '@millrace/protocol';
import { PostgresServer, skipPostgres } from '@millrace/testkit';
import { openPostgresStore } from '../../src/postgres/postgres.ts';
import type { Store } from '../../src/store.ts';
import { openLogTransaction, schemaOf } from './log-transaction.ts';

/** Not repeatable, and repeatable: a commit with the first is on disk when it is answered. */
const [durable, soft] = ['task-skip', 'turn-end'] as const;

describe('the sequencer of the log', { skip: skipPostgres }, () => {
  let opening: Promise<PostgresServer> | undefined;
  after(async () => (await opening)?.[Symbol.asyncDispose]());
  const openServer = () => (opening ??= PostgresServer.open({ isDurable: true }));

  /** As a worker has it: it never numbers the log of others. */
  const openWorkerStore = (address: string) => openPostgresStore({ address, clock: systemClock, log: silentLog, hints: 'work' });

  const children = new Set<ChildProcess>();
  after(() => Promise.all([...children].map(killProcess)));

  async function openSequencer(address: string): Promise<ChildProcess> {
    const child = fork(fileURLToPath(new URL('./sequencer-process.ts', import.meta.url)), [address], {
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    children.add(child);
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`the sequencer did not open: ${code}`);
    });
    await Promise.race([once(child, 'message'), ended]);
    ended.catch(() => {}); // it is killed later
    return child;
  }

  async function killProcess(child: ChildProcess): Promise<void> {
    children.delete(child);
    const exited = once(child, 'exit');
    if (child.kill('SIGKILL')) await exited;
  }

  /** Reads on until `isEnough`. */
  async function followUntil(store: Store, seen: Event[], isEnough: () => boolean): Promise<void> {
    while (!isEnough()) {
      const { events } = await store.events(seen.at(-1)?.id ?? 0, { limit: 1_000 });
      seen.push(...events);
      if (events.length === 0) await pause(5);
    }
  }

  test('a reader loses nothing that it saw, and sees every durable event once and in order, whatever dies', async () => {
    const server = await openServer();
    const address = await server.makeAddress();
    const sequencers = [await openSequencer(address), await openSequencer(address)];
    await using reader = await openWorkerStore(address);
    const writers = await Promise.all(Array.from({ length: 3 }, () => openWorkerStore(address)));
    let isOver = false;
    const acknowledged = writers.map(() => 0);
    const write = async (store: Store, writer: number) => {
      for (let turn = 0; !isOver; turn += 1) {
        await store.appendEvents([{ kind: soft, data: { writer, turn } }]);
        await store.appendEvents([{ kind: durable, data: { writer, turn } }]);
        acknowledged[writer] = turn + 1;
        await pause(10);
      }
    };
    const writing = Promise.all(writers.map(write));
    const seen: Event[] = [];
    const isAllSeen = () => isOver && acknowledged.every((count, writer) => countOf(seen, writer) >= count);
    const following = followUntil(reader, seen, isAllSeen);
    for (const round of [0, 1, 2]) {
      await pause(300);
      const [victim] = sequencers.splice(round % 2, 1);
      if (victim) await killProcess(victim);
      if (round === 1) {
        await server.stop('SIGKILL');
        await server.start();
      }
      sequencers.push(await openSequencer(address));
    }
    isOver = true;
    await writing;
    await following;
    assert.deepEqual(
      seen.map(({ id }) => id),
      seen.map((_, index) => index + 1),
      'ids without gaps',
    );
    for (const writer of writers.keys()) {
      const turns = seen.filter(({ kind, data }) => kind === durable && data.writer === writer).map(({ data }) => data.turn);
      assert.deepEqual(
        turns,
        Array.from({ length: acknowledged[writer] ?? 0 }, (_, turn) => turn),
      );
      const order = seen
        .filter(({ data }) => data.writer === writer)
        .map(({ kind, data }) => 2 * Number(data.turn) + Number(kind === durable));
      assert.deepEqual(
        order,
        order.toSorted((a, b) => a - b),
        'what a writer wrote first comes first',
      );
    }
    const left =
      'SELECT count(*) FROM (SELECT n FROM event_inbox UNION ALL SELECT n FROM count_deltas UNION ALL SELECT n FROM served_deltas) AS left_over';
    assert.deepEqual(await server.run(`SET search_path = ${schemaOf(address)}; ${left}`), ['0'], 'nothing was passed over');
    const kept: Event[] = [];
    await followUntil(reader, kept, () => kept.length >= seen.length);
    assert.deepEqual(kept.slice(0, seen.length), seen, 'what was seen is still there');
    await Promise.all([...writers.map((store) => store[Symbol.asyncDispose]()), ...sequencers.map(killProcess)]);
  });

  test('another process takes the duty of one that stopped without a word', async () => {
    const server = await openServer();
    const address = await server.makeAddress();
    const stopped = await openSequencer(address);
    await using writer = await openWorkerStore(address);
    await writer.appendEvents([{ kind: soft, data: {} }]);
    const seen: Event[] = [];
    await followUntil(writer, seen, () => seen.length === 1);
    stopped.kill('SIGSTOP');
    const other = await openSequencer(address);
    await writer.appendEvents([{ kind: soft, data: {} }]);
    await followUntil(writer, seen, () => seen.length === 2);
    await Promise.all([stopped, other].map(killProcess));
  });

  test('a commit waits for no other that has written to the log', async () => {
    const server = await openServer();
    const address = await server.makeAddress();
    await using store = await openPostgresStore({ address, clock: systemClock, log: silentLog });
    await using early = await openLogTransaction(address);
    await early.append('early');
    for (const kind of [durable, soft]) await store.appendEvents([{ kind, data: { name: kind } }]);
    await early.commit();
    const seen: Event[] = [];
    await followUntil(store, seen, () => seen.length === 3);
    assert.deepEqual(seen.map(({ data }) => data.name).toSorted(), ['early', durable, soft].toSorted());
  });

  test('without any sequencer a durable commit numbers what was left', async () => {
    const server = await openServer();
    const address = await server.makeAddress();
    await using store = await openWorkerStore(address);
    for (const kind of [soft, soft, durable]) await store.appendEvents([{ kind, data: {} }]);
    const { events } = await store.events(0, { limit: 10 });
    assert.deepEqual(
      events.map(({ id, kind }) => [id, kind]),
      [
        [1, soft],
        [2, soft],
        [3, durable],
      ],
    );
    const left = await server.run(`SET search_path = ${schemaOf(address)}; SELECT count(*) FROM event_inbox`);
    assert.deepEqual(left, ['0']);
  });

  test('rows below the point from which the inbox is read were all numbered, while transactions overlap', async () => {
    const server = await openServer();
    const address = await server.makeAddress();
    await using store = await openPostgresStore({ address, clock: systemClock, log: silentLog });
    const open = [];
    for (let round = 0; round < 12; round += 1) {
      const transaction = await openLogTransaction(address);
      await transaction.append(`open ${round}`);
      open.push(transaction);
      await store.appendEvents([{ kind: soft, data: { name: `soft ${round}` } }]);
      if (round % 3 === 2) for (const one of open.splice(0, 2).toReversed()) await one.commit();
    }
    for (const one of open) await one.commit();
    const seen: Event[] = [];
    await followUntil(store, seen, () => seen.length === 24);
    assert.equal(new Set(seen.map(({ data }) => data.name)).size, 24);
    await store.appendEvents([{ kind: soft, data: {} }]);
    await followUntil(store, seen, () => seen.length === 25);
    const [from] = await server.run(`SET search_path = ${schemaOf(address)}; SELECT read_from FROM event_log`);
    assert.ok(Number(from) > 0, 'it moves on once they are over');
  });
});

function countOf(events: readonly Event[], writer: number): number {
  return events.filter(({ kind, data }) => kind === durable && data.writer === writer).length;
}
