// Workers that have servers in place of a store: a server that dies in the middle of a call costs a retry and no result, and what they wait for
// reaches them at once. The whole contract is checked in `world/services/remote-store.test.ts`.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { workerId } from '@millrace/protocol';
import { openRemoteStore } from '@millrace/store';
import { makeReport, makeResult, makeRollout, makeTrajectory } from '@millrace/testkit';
import { openFloor } from '../floor.ts';

/** Passes requests on. Of each kind of call in `cut`, the first reply is lost, after the server did what was asked. */
async function openCuttingProxy(target: string, cut: Set<string>): Promise<{ url: string } & AsyncDisposable> {
  const listener: RequestListener = (request, response) => {
    const name = request.url?.split('/').at(-1) ?? '';
    const upstream = send(`${target}${request.url}`, { method: 'POST', headers: request.headers }, (reply) => {
      if (!cut.delete(name)) return void reply.pipe(response.writeHead(reply.statusCode ?? 500, reply.headers));
      reply.resume();
      reply.on('end', () => request.socket.destroy());
    });
    upstream.on('error', () => request.socket.destroy());
    request.pipe(upstream);
  };
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = async () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, [Symbol.asyncDispose]: close };
}

const leaseMs = 60_000;
const roomy = { maxQueued: 100 };

test('a server that dies after it did what was asked costs a retry: the same claims, every stage, one end', async () => {
  await using floor = await openFloor();
  const cut = new Set(['registerWorker', 'claim', 'move', 'place', 'appendTurns', 'appendEvents', 'finish', 'renew', 'dropWorker']);
  await using proxy = await openCuttingProxy(await floor.listen(), cut);
  const dead = 'http://127.0.0.1:9';
  await using remote = openRemoteStore({ servers: [dead, proxy.url], log: silentLog });
  const { store } = floor;
  await store.submit([makeRollout('a'), makeRollout('b'), makeRollout('c')], roomy);
  const worker = workerId.parse('w');
  await remote.registerWorker({ id: worker, host: 'h', pid: 1 }, { leaseMs });
  const claims = await remote.claim(worker, 2);
  assert.deepEqual(
    claims.map(({ id, attempt, submission }) => [id, attempt, submission.scenario]),
    [
      ['a', 1, 'math'],
      ['b', 1, 'math'],
    ],
    'what the lost reply named, and nothing more',
  );
  const [claim] = claims;
  assert.ok(claim);
  for (const to of ['ready', 'run'] as const) assert.equal(await remote.move(claim, to), true);
  await remote.place(claim, {});
  const turn = { turn: 1, body: Uint8Array.of(0, 255, 10) };
  assert.deepEqual(await remote.appendTurns(worker, [{ id: claim.id, attempt: 1, turns: [turn] }]), ['a']);
  assert.deepEqual([...((await remote.loggedTurns(claim))[0]?.body ?? [])], [0, 255, 10]);
  const happened = [{ kind: 'turn-end' as const, rolloutId: claim.id, data: {} }];
  await assert.rejects(remote.appendEvents(happened), { isUnknown: true }, 'what happened is not logged twice');
  assert.equal(await remote.move(claim, 'evaluate'), true);
  const ending = { state: 'done', result: makeResult(1), trajectory: makeTrajectory('a', 1) } as const;
  assert.equal(await remote.finish(claim, ending), true);
  assert.equal(await remote.finish(claim, { state: 'cancelled' }), false, 'another end is fenced');
  const held = { claims: claims.slice(1), maxLosses: 3 };
  assert.deepEqual(await remote.renew(worker, { leaseMs, report: makeReport(1), held }), { alive: true, cancelled: [] });
  await remote.dropWorker(worker, { maxLosses: 3 });
  assert.deepEqual([...cut], [], 'each reply was lost once');
  const { events } = await store.events(0, { limit: 1_000 });
  const count = (kind: string) => events.filter((event) => event.kind === kind && event.rollout_id === 'a').length;
  assert.deepEqual(['rollout-move', 'turn-end', 'rollout-end'].map(count), [4, 1, 1], 'claimed, ready, run, evaluate; one turn; one end');
  assert.deepEqual(await store.trajectory(claim.id), ending.trajectory);
});

test('what a worker waits for reaches it at once from a server, and a worker that waits asks for nothing meanwhile', async () => {
  await using floor = await openFloor();
  let asked = 0;
  floor.app.server.on('request', () => {
    asked += 1;
  });
  await using remote = openRemoteStore({ servers: [await floor.listen()], log: silentLog });
  const hints: number[] = [];
  let hinted = Promise.withResolvers<void>();
  const stop = remote.onHint(() => {
    hints.push(asked);
    hinted.resolve();
  });
  await hinted.promise;
  const after = await remote.lastEventId();
  const kinds = ['rollout-queue', 'rollout-cancel'] as const;
  hinted = Promise.withResolvers();
  await floor.store.submit([makeRollout('a')], roomy);
  await hinted.promise;
  const before = asked;
  const { events, last } = await remote.events(after, { limit: 10, kinds });
  assert.deepEqual(
    events.map(({ kind, rollout_id: id }) => [kind, id]),
    [['rollout-queue', 'a']],
  );
  assert.deepEqual(await remote.events(last, { limit: 10, kinds }), { events: [], last });
  assert.equal(asked, before, 'both reads are answered from what the server sent');
  stop();
});

test('a worker of another wire is refused, with the advice what to replace, and so is one without the right', async () => {
  await using floor = await openFloor({ config: { keys: ['admin-key-0123456789'], submitKeys: ['submit-key-0123456789'] } });
  const call = async (wire: string | undefined, key: string, name = 'policy') => {
    const headers = { authorization: `Bearer ${key}`, ...(wire !== undefined && { 'millrace-wire': wire }) };
    const reply = await floor.app.inject({ method: 'POST', url: `/v1/worker-calls/${name}`, headers, payload: 'null' });
    return [reply.statusCode, reply.json().error?.message ?? reply.json()];
  };
  assert.equal((await call('1', 'admin-key-0123456789'))[0], 200);
  assert.match(`${await call('2', 'admin-key-0123456789')}`, /^409,the worker speaks wire 2, and this server 1: replace the servers/);
  assert.match(`${await call('0', 'admin-key-0123456789')}`, /^409,.*replace the worker by the version of its service/);
  assert.equal((await call('1', 'submit-key-0123456789'))[0], 403);
  assert.equal((await call('1', 'admin-key-0123456789', 'retain'))[0], 404);
  const refused = openRemoteStore({ servers: [await floor.listen()], key: 'submit-key-0123456789', log: silentLog });
  await assert.rejects(refused.policy(), { code: 'forbidden' });
  await refused[Symbol.asyncDispose]();
});
