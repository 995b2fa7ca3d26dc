// The client against an in-memory service over real HTTP: restarts, refusals, full queues and broken streams.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { definedOf, type RolloutView, type Trajectory, toBinary } from '@millrace/protocol';
import { send, withBoth } from './fake-service.ts';

const task = (id?: string) => ({ scenario: 'math', task: {}, ...definedOf({ id }) });

async function take<T>(source: AsyncIterable<T>, count: number): Promise<T[]> {
  const taken: T[] = [];
  for await (const item of source) if (taken.push(item) === count) break;
  return taken;
}

test('a submission goes out in pieces of at most 1000, with an id made for each', () =>
  withBoth(async (service, client) => {
    const accepted = await client.submit(Array.from({ length: 2500 }, () => task()));
    assert.equal(accepted.length, 2500);
    assert.equal(new Set(accepted.map((one) => one.id)).size, 2500);
    assert.deepEqual(service.requests, ['POST /v1/rollouts', 'POST /v1/rollouts', 'POST /v1/rollouts']);
  }));

test('a connection that breaks after the service accepted is repeated with the same ids', () =>
  withBoth(async (service, client) => {
    service.onSubmit = () => {
      service.onSubmit = () => {};
      service.breakConnections();
    };
    const [accepted] = await client.submit([task()]);
    assert.equal(accepted?.created, false);
    assert.equal(service.rollouts.size, 1);
  }));

test('a full queue gets smaller pieces until there is room', () =>
  withBoth(async (service, client) => {
    const sizes: number[] = [];
    service.fault = (_request, response, body) => {
      const size = JSON.parse(body).rollouts.length;
      sizes.push(size);
      if (size <= 4) return false;
      const error = { code: 'too-busy', message: 'full', blame: 'service', retryable: true };
      send(response, 429, { error }, { 'retry-after': '0.01' });
      return true;
    };
    const accepted = await client.submit(Array.from({ length: 10 }, (_, n) => task(`r${n}`)));
    assert.deepEqual(
      accepted.map((one) => one.id),
      Array.from({ length: 10 }, (_, n) => `r${n}`),
    );
    assert.equal(sizes[0], 10);
    assert.equal(service.rollouts.size, 10);
  }));

test('a list reads all its pages', () =>
  withBoth(async (service, client) => {
    for (const id of ['a', 'b', 'c', 'd', 'e']) service.add(id);
    const seen: string[] = [];
    for await (const view of client.list({ state: 'queued' })) seen.push(view.id);
    assert.deepEqual(seen, ['a', 'b', 'c', 'd', 'e']);
    assert.match(service.requests[0] ?? '', /state=queued/);
  }));

test('a list with a limit reads no more pages than it needs', () =>
  withBoth(async (service, client) => {
    for (const id of ['a', 'b', 'c', 'd', 'e']) service.add(id);
    assert.equal((await take(client.list({ limit: 3, order: 'newest' }), 9)).length, 3);
    assert.deepEqual(service.requests, ['GET /v1/rollouts?order=newest&limit=3', 'GET /v1/rollouts?order=newest&limit=1&after=2']);
  }));

test('a trajectory is returned bit for bit', () =>
  withBoth(async (service, client) => {
    const segments = [
      { kind: 'sampled' as const, turn: 1, text: 'hi', messages: [], tokenIds: Int32Array.of(7, 8), logprobs: Float32Array.of(-0.1, -2.5) },
    ];
    const trajectory: Trajectory = { rolloutId: 'r1', attempt: 1, model: 'm', tools: [], segments };
    service.trajectories.set('r1', trajectory);
    assert.deepEqual(await client.trajectory('r1'), trajectory);
    await assert.rejects(client.trajectory('r2'), { code: 'not-found' });
  }));

test('a trajectory that a proxy changed, cut off or mixed up is refused', () =>
  withBoth(async (service, client) => {
    const bytes = toBinary({ rolloutId: 'r1', attempt: 1, model: 'm', tools: [], segments: [] });
    const reply = (sent: Uint8Array) => {
      service.fault = (_, response) => {
        response.end(sent);
        return true;
      };
    };
    const flipped = Buffer.from(bytes);
    flipped[20] = (flipped[20] ?? 0) ^ 1;
    for (const wrong of [flipped, bytes.subarray(0, -1), Buffer.concat([bytes, Buffer.from(' ')])]) {
      reply(wrong);
      await assert.rejects(client.trajectory('r1'), {
        code: 'trajectory-corrupt',
        message: /GET \/v1\/rollouts\/r1\/trajectory .* trust: .*checksum/,
      });
    }
    reply(bytes);
    await assert.rejects(client.trajectory('r2'), { code: 'trajectory-corrupt', message: /of rollout r1/ });
    reply(Buffer.from('<h1>nginx</h1>'));
    await assert.rejects(client.trajectory('r1'), { code: 'internal', message: /cannot read/ });
  }));

test('events resume after a break where they stopped, each once', () =>
  withBoth(async (service, client) => {
    const { port } = service;
    for (let n = 0; n < 3; n++) service.emit({ kind: 'turn-end', rollout_id: `r${n}` });
    const events = client.events({ after: 1 })[Symbol.asyncIterator]();
    const ids = [(await events.next()).value?.id, (await events.next()).value?.id];
    await service.stop();
    service.emit({ kind: 'turn-end' });
    await service.start(port);
    ids.push((await events.next()).value?.id);
    service.emit({ kind: 'unknown-kind' });
    service.emit({ kind: 'turn-end' });
    ids.push((await events.next()).value?.id);
    assert.deepEqual(ids, [2, 3, 4, 6]);
    await events.return?.(undefined);
  }));

test('reading events stops when its signal aborts', () =>
  withBoth(async (service, client) => {
    const stop = new AbortController();
    const reading = take(client.events({ signal: stop.signal }), 1);
    while (service.streams.size === 0) await new Promise(setImmediate);
    stop.abort();
    await assert.rejects(reading, { name: 'AbortError' });
  }));

test('results come in the order in which rollouts end, with one read each', () =>
  withBoth(async (service, client) => {
    for (const id of ['a', 'b', 'c']) service.add(id);
    const results = take(client.results(['a', 'b', 'c'], { after: 0 }), 9);
    service.end('c');
    service.end('a');
    service.end('b');
    assert.deepEqual(
      (await results).map((view) => view.id),
      ['c', 'a', 'b'],
    );
    assert.equal(service.requests.filter((line) => line.startsWith('GET /v1/rollouts/')).length, 3);
  }));

test('no result is lost when many end while the reader is slow', () =>
  withBoth(async (service, client) => {
    const ids = Array.from({ length: 40 }, (_, n) => `r${n}`);
    for (const id of ids) service.end(id);
    const seen: string[] = [];
    for await (const view of client.results(ids, { after: 0 })) {
      seen.push(view.id);
      await client.status();
    }
    assert.deepEqual(seen, ids);
  }));

test('results include rollouts that ended before the call, and while the event log was down', () =>
  withBoth(async (service, client) => {
    service.end('a', {}, { quietly: true });
    service.add('b');
    const { port } = service;
    const results = client.results(['a', 'b'])[Symbol.asyncIterator]();
    assert.equal((await results.next()).value?.id, 'a');
    const next = results.next();
    while (service.streams.size === 0) await new Promise(setImmediate);
    await service.stop();
    service.end('b', {}, { quietly: true });
    await service.start(port);
    assert.equal((await next).value?.id, 'b');
    assert.equal((await results.next()).done, true);
  }));

test('results of a rollout that the service does not know throw not-found', () =>
  withBoth(async (_service, client) => {
    await assert.rejects(take(client.results(['unknown']), 1), { code: 'not-found' });
  }));

test('a run yields results while later pieces still wait for room in the queue', () =>
  withBoth(async (service, client) => {
    let room = 2;
    service.fault = (request, response, body) => {
      if (request.method !== 'POST') return false;
      const size = JSON.parse(body).rollouts.length;
      if (size <= room) {
        room -= size;
        return false;
      }
      send(response, 429, {}, { 'retry-after': '0.005' });
      return true;
    };
    service.onSubmit = (ids) => {
      for (const id of ids) service.end(id);
    };
    const seen: RolloutView[] = [];
    for await (const view of await client.run(Array.from({ length: 8 }, (_, n) => task(`r${n}`)))) {
      seen.push(view);
      room += 1;
    }
    assert.equal(seen.length, 8);
  }));

test('every fault of many submissions is listed, whatever fits into one request', () =>
  withBoth(async (service, client) => {
    service.fault = (request, response, body) => {
      if (request.method !== 'POST') return false;
      const { rollouts } = JSON.parse(body);
      if (rollouts.length > 600) send(response, 413, { error: { code: 'body-too-large', message: '', blame: 'caller', retryable: false } });
      else {
        const bad = rollouts.flatMap((one: { id: string }, index: number) =>
          /9$/.test(one.id) ? [{ index, path: `rollouts[${index}].task`, message: 'bad' }] : [],
        );
        const error = { code: 'task-invalid', message: '', blame: 'caller', retryable: false, details: { faults: bad } };
        send(response, bad.length > 0 ? 400 : 200, bad.length > 0 ? { error } : { rollouts: [] });
      }
      return true;
    };
    const faults = await client.check(Array.from({ length: 1505 }, (_, n) => task(`r${n}`)));
    assert.deepEqual([faults.length, faults[0], faults.at(-1)?.index], [150, { index: 9, path: 'task', message: 'bad' }, 1499]);
    assert.equal(service.rollouts.size, 0);
  }));

test('a run that is submitted again yields rollouts that had already ended', () =>
  withBoth(async (service, client) => {
    service.end('old', { reward: 0.25 });
    const [view] = await take(await client.run([task('old')]), 2);
    assert.equal(view?.reward, 0.25);
  }));

test('a run whose submission is refused throws the refusal', () =>
  withBoth(async (service, client) => {
    service.fault = (request, response) => {
      if (request.method !== 'POST') return false;
      send(response, 400, { error: { code: 'unknown-scenario', message: 'no such scenario', blame: 'caller', retryable: false } });
      return true;
    };
    await assert.rejects(take(await client.run([task()]), 1), { code: 'unknown-scenario' });
  }));

test('a run that is refused in the middle yields what was accepted before it, and then throws', () =>
  withBoth(async (service, client) => {
    service.fault = (request, response, body) => {
      if (request.method !== 'POST' || !body.includes('"r1000"')) return false;
      send(response, 409, { error: { code: 'conflict', message: 'taken', blame: 'caller', retryable: false } });
      for (const id of service.rollouts.keys()) service.end(id);
      return true;
    };
    const seen: RolloutView[] = [];
    const collect = async () => {
      for await (const view of await client.run(Array.from({ length: 1001 }, (_, n) => task(`r${n}`)))) seen.push(view);
    };
    await assert.rejects(collect(), { code: 'conflict' });
    assert.equal(seen.length, 1000);
  }));

test('cancelling a run ends the iteration: unsent rollouts are dropped, lost ones forgotten, running ones cancelled', () =>
  withBoth(async (service, client) => {
    const accepted = new Promise<void>((resolve) => {
      service.fault = (request, response) => {
        if (request.method !== 'POST') return false;
        // The second piece is lost: sent, never answered, never accepted.
        if (service.rollouts.size > 0) return true;
        service.onSubmit = () => setImmediate(resolve);
        return response.writableEnded;
      };
    });
    const run = await client.run(Array.from({ length: 1021 }, (_, n) => task(`r${n}`)));
    const collected = take(run, 9999);
    await accepted;
    service.end('r0');
    while (!service.requests.some((line) => line === 'GET /v1/rollouts/r0')) await new Promise(setImmediate);
    assert.ok((await run.cancel()) >= 999);
    const states = (await collected).map((view) => view.state);
    assert.deepEqual([states.length, states.filter((state) => state === 'cancelled').length], [1000, 999]);
    assert.equal(run.accepted, 1000);
  }));

test('leaving an iteration early closes its event stream', () =>
  withBoth(async (service, client) => {
    for (const id of ['a', 'b']) service.add(id);
    service.end('a');
    await take(client.results(['a', 'b'], { after: 0 }), 1);
    for (const stream of service.streams) await once(stream, 'close');
    assert.equal(service.streams.size, 0);
  }));
