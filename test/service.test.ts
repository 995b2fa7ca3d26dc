// The whole service as its users run it: its own processes, HTTP, real sandboxes, and a fake backend that speaks the real protocol.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { processReply, type SubmissionInput } from '@millrace/protocol';
import { probeBubblewrap } from '@millrace/sandbox';
import {
  type FakeTokens,
  findWrongToken,
  openFakeBackend,
  openFakeTokens,
  processesInSandboxesOf,
  qwen3Folder,
  renderCall,
  scriptedPolicy,
  TestService,
} from '@millrace/testkit';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const main = fileURLToPath(new URL('../packages/cli/src/main.ts', import.meta.url));
const ownScenario = fileURLToPath(new URL('../examples/own-scenario/scenario.ts', import.meta.url));
const tokenizer = qwen3Folder();

const policy = scriptedPolicy([
  { match: /1 \+ 1/, turns: ['It is \\boxed{2}.'] },
  {
    match: /data\.csv/,
    turns: [
      renderCall('preview', { lines: 2 }),
      renderCall('bash', { command: 'cut -d, -f2 data.csv | paste -sd+ | bc 2>/dev/null || awk -F, "{s+=\\$2} END {print s}" data.csv' }),
      renderCall('finish', { answer: '6' }),
    ],
  },
  { match: /sleep/, turns: [renderCall('bash', { command: 'sleep 0.2' }), renderCall('finish', {})] },
]);

const math = (id: string): SubmissionInput => ({ id, scenario: 'math', task: { question: '1 + 1 = ?', answer: '2' } });
const sleepy = (id: string): SubmissionInput => ({ id, scenario: 'shell', task: { instruction: 'sleep a little', check: 'true' } });

describe('the service', { skip }, () => {
  let tokens: FakeTokens;
  before(async () => {
    tokens = await openFakeTokens();
  });

  test('a ProRL Agent client works unchanged: start, add a server, process, stop', async () => {
    await using backend = await openFakeBackend({ policy, tokens });
    await using service = await TestService.open({ workers: 1, tokenizer });
    const post = async (path: string, body: unknown = {}) => {
      const reply = await fetch(new URL(path, service.url), {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      });
      return { status: reply.status, body: await reply.json() };
    };
    assert.equal((await post('/process', { instance: {}, sampling_params: {} })).status, 503);
    assert.equal((await post('/add_llm_server', { address: `${backend.url}/v1` })).status, 200);
    assert.equal((await post('/start')).status, 200);
    const instance = {
      data_source: 'deepscaler',
      instance_id: 'aime-1',
      trajectory_id: 0,
      prompt: [{ role: 'user', content: '1 + 1 = ?' }],
      reward_model: { ground_truth: 2 },
    };
    const { status, body } = await post('/process', {
      instance,
      sampling_params: { model: 'x', temperature: 0.7, max_iterations: 3, token_level_generation: true },
    });
    assert.equal(status, 200);
    const reply = processReply.parse(body);
    assert.deepEqual([reply.resolved, reply.reward, reply.success, reply.filter, reply.critical_error], [true, 1, true, false, null]);
    const said = reply.messages.find(({ role }) => role === 'assistant');
    assert.equal(said?.token_ids?.length, said?.logprobs?.length);
    assert.deepEqual(said?.input_ids, [...(backend.requests[0]?.promptIds ?? [])]);
    assert.equal((await post('/stop')).status, 200);
  });

  test('a stopped service hands back what runs, and the next one finishes it: none lost, none twice', async () => {
    await using backend = await openFakeBackend({ policy, tokens, latencyMs: 50 });
    await using service = await TestService.open({ workers: 2, tokenizer, pipeline: { handBackMs: 0 } });
    const { client } = service;
    await client.backends.join({ url: backend.url });
    const ids = Array.from({ length: 24 }, (_, index) => `s-${index}`);
    await client.submit(ids.map(sleepy));
    await once(backend.events, 'answer');
    await service.stop();
    assert.deepEqual(await processesInSandboxesOf(service.runDir), []);
    await service.start();
    const views = await Array.fromAsync(client.results(ids));
    assert.deepEqual(
      views.filter(({ state, losses, retries }) => state !== 'done' || losses + retries > 0),
      [],
    );
    for (const { id } of views) assert.deepEqual(findWrongToken(await client.trajectory(id)), []);
  });

  test('rollouts wait while there is no worker, and a `millrace worker` claims them', async () => {
    await using backend = await openFakeBackend({ policy, tokens });
    await using service = await TestService.open({ workers: 0, tokenizer });
    await service.client.backends.join({ url: backend.url });
    await service.client.submit([math('w-1')]);
    assert.equal((await service.client.get('w-1')).state, 'queued');
    const worker = spawn(process.execPath, [main, 'worker', '--config', join(service.folder, 'millrace.json')], { stdio: 'ignore' });
    const view = await service.client.wait('w-1');
    assert.deepEqual([view.state, view.reward], ['done', 1]);
    worker.kill('SIGTERM');
    assert.deepEqual(await once(worker, 'exit'), [0, null]);
  });

  test("a user's scenario is loaded from its path", async () => {
    await using backend = await openFakeBackend({ policy, tokens });
    await using service = await TestService.open({ workers: 1, tokenizer, scenarios: [ownScenario] });
    await service.client.backends.join({ url: backend.url });
    const submission = {
      id: 'own',
      scenario: 'column-sum',
      task: {
        rows: [
          [1, 2],
          [3, 4],
        ],
        column: 2,
      },
    };
    await service.client.submit([submission]);
    const view = await service.client.wait('own');
    assert.deepEqual([view.state, view.reward], ['done', 1]);
    const { segments } = await service.client.trajectory('own');
    assert.equal(segments.find(({ kind }) => kind === 'observation')?.messages[0]?.content, '1,2\n3,4\n');
    await assert.rejects(service.client.submit([{ ...submission, id: 'bad', task: { rows: [], column: 2 } }]), {
      code: 'task-invalid',
      message: /rollouts\[0\]\.task\.rows/,
    });
  });

  test('workers whose server was killed leave', async () => {
    await using service = await TestService.open({ workers: 2, tokenizer });
    while ((await service.client.status()).workers.length < 2) await new Promise((resolve) => setTimeout(resolve, 50));
    const pids = (await service.client.status()).workers.map(({ pid }) => pid);
    await service.kill();
    const isAlive = (pid: number) => spawnSync('grep', ['-qs', 'worker-main', `/proc/${pid}/cmdline`]).status === 0;
    const deadline = performance.now() + 5000;
    while (pids.some(isAlive) && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 50));
    assert.deepEqual(pids.filter(isAlive), []);
  });

  test('a worker that was stopped past its lease and continues later is fenced out: every rollout ends once', async () => {
    await using backend = await openFakeBackend({ policy, tokens, latencyMs: 50 });
    await using service = await TestService.open({ workers: 2, tokenizer, pipeline: { leaseMs: 3000, runSlots: 4, initSlots: 2 } });
    const { client } = service;
    await client.backends.join({ url: backend.url });
    const ids = Array.from({ length: 24 }, (_, index) => `p-${index}`);
    await client.submit(ids.map(sleepy));
    const victim = await busyWorker(service);
    const { last_event_id: after } = await client.status();
    await stopBetweenWrites(victim, service);
    for await (const event of client.events({ after })) if (event.kind === 'worker-end') break;
    process.kill(victim, 'SIGCONT'); // a worker that is stopped for three leases is replaced
    for await (const event of client.events({ after })) if (event.kind === 'worker-start') break;
    const views = await Array.fromAsync(client.results(ids));
    assert.deepEqual(
      views.filter(({ state }) => state !== 'done'),
      [],
    );
    assert.ok(views.some(({ losses }) => losses > 0));
    assert.match(await service.log(), /"event":"worker-fenced"/);
    for (const { id } of views) assert.deepEqual(findWrongToken(await client.trajectory(id)), []);
  });

  test('an address that others can reach is refused without a key', () => {
    const { status, stderr } = spawnSync(process.execPath, [main, 'serve', '--host', '0.0.0.0', '--workers', '0', '--data', '/nowhere'], {
      encoding: 'utf8',
    });
    assert.equal(status, 1);
    assert.match(stderr, /0\.0\.0\.0.*key/s);
  });
});

/** A process that is stopped within a transaction would lock the store for all others. */
async function stopBetweenWrites(pid: number, { folder }: TestService): Promise<void> {
  using db = new DatabaseSync(join(folder, 'data', 'millrace.db'), { timeout: 500 });
  for (;;) {
    process.kill(pid, 'SIGSTOP');
    try {
      return db.exec('BEGIN IMMEDIATE; ROLLBACK');
    } catch {
      process.kill(pid, 'SIGCONT'); // it was writing
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

async function busyWorker({ client }: TestService): Promise<number> {
  for (;;) {
    const busy = (await client.status()).workers.find(({ alive, report }) => alive && report !== null && report.stages.run.active > 0);
    if (busy) return busy.pid;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
