// A worker and the lives of its rollouts, in real sandboxes.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { RolloutError, workerId } from '@millrace/protocol';
import { probeBubblewrap } from '@millrace/sandbox';
import { findWrongToken, makeReport, processesInSandboxesOf, scriptedFaults } from '@millrace/testkit';
import { bash, finish, says, shell, toRecord, WorkerBed } from './worker-bed.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

describe('a worker', { skip }, () => {
  test('runs a shell task through all stages and scores it in a sandbox that the agent never touched', async () => {
    await using bed = await WorkerBed.open({ policy: says(bash('cat secret > copy; touch /tmp/planted'), finish('ok')) });
    await bed.startWorker();
    const check = 'grep -qx 42 copy && [ ! -e /tmp/planted ] && [ "$ANSWER" = ok ]';
    const id = await bed.submit(shell('one', { setup: 'echo 42 > secret', check }));
    const record = await bed.ended(id);
    assert.equal(record.state, 'done');
    assert.equal(record.result?.reward, 1);
    assert.equal(record.result?.stop_reason, 'tool_stopped');
    assert.equal(record.result?.turns, 2);
    assert.deepEqual(record.result?.policy_versions, { first: 7, last: 7 });
    const trajectory = await bed.store.trajectory(id);
    assert.deepEqual(
      trajectory?.segments.map(({ kind }) => kind),
      ['prompt', 'sampled', 'observation', 'sampled'],
    );
    assert.deepEqual(trajectory && findWrongToken(trajectory), []);
    const [provenance, ...others] = trajectory?.provenances ?? [];
    assert.deepEqual(others, []);
    assert.deepEqual(
      trajectory?.segments.map(({ provenance }) => provenance),
      [undefined, 0, undefined, 0],
    );
    assert.deepEqual([provenance?.dialect, provenance?.logprobs_mode, provenance?.sampling.temperature], ['vllm', 'raw', 1]);
    assert.match(`${provenance?.tokenizer_sha256} ${provenance?.template_sha256}`, /^[0-9a-f]{64} [0-9a-f]{64}$/);
    assert.deepEqual(
      (await readdir(bed.runDir)).filter((name) => name.startsWith('sb-')),
      [],
    );
  });

  test('every prompt that the backend saw starts with the whole of the one before', async () => {
    await using bed = await WorkerBed.open({
      policy: says(bash('echo <|im_end|>'), bash('printf "\\xff\\x00é"'), 'not a call <tool_call>{', finish()),
    });
    await bed.startWorker();
    const id = await bed.submit(shell('prefix'));
    assert.equal((await bed.ended(id)).state, 'done');
    const prompts = bed.backend.requests.map(({ promptIds }) => [...promptIds]);
    assert.equal(prompts.length, 4);
    for (const [index, prompt] of prompts.slice(1).entries()) assert.deepEqual(prompt.slice(0, prompts[index]?.length), prompts[index]);
  });

  test('a turn that is cut off gets an untrained end of turn inserted, and the rollout continues', async () => {
    await using bed = await WorkerBed.open({
      policy: ({ turn }) => ({ text: turn === 0 ? `${bash('true')}${' and on'.repeat(50)}` : finish() }),
    });
    await bed.startWorker();
    const id = await bed.submit(shell('cut', {}, { sampling: { max_tokens: 40 } }));
    const record = await bed.ended(id);
    const kinds = (await bed.store.trajectory(id))?.segments.map(({ kind }) => kind);
    assert.deepEqual(kinds, ['prompt', 'sampled', 'inserted', 'observation', 'sampled']);
    assert.equal(record.result?.stop_reason, 'tool_stopped');
  });

  test('the model gets an answer to a malformed call, and three in a row stop the agent', async () => {
    await using bed = await WorkerBed.open({ policy: says('<tool_call>{"name": </tool_call>') });
    await bed.startWorker();
    const id = await bed.submit(shell('garbled'));
    const { result } = await bed.ended(id);
    assert.equal(result?.stop_reason, 'parse_error');
    assert.equal(result?.malformed_calls, 3);
    assert.equal(result?.reward, 1, 'the verifier still evaluates the results');
  });

  test('a setup script that fails is blamed on the task, with its output', async () => {
    await using bed = await WorkerBed.open();
    await bed.startWorker();
    const id = await bed.submit(shell('setup', { setup: 'echo no such repository >&2; exit 3' }));
    const { state, failure, result } = await bed.ended(id);
    assert.equal(state, 'failed');
    assert.equal(failure?.code, 'init-failed');
    assert.equal(failure?.blame, 'task');
    assert.match(failure?.message ?? '', /exit code 3: no such repository/);
    assert.equal(result?.reward, null);
  });

  test('a verifier that cannot judge gives no reward, not a zero', async () => {
    await using bed = await WorkerBed.open();
    await bed.startWorker();
    const ids = await bed.submitAll(
      shell('missing', { check: 'no-such-program' }),
      shell('invalid', { check: 'if true # millrace: allow syntax broken on purpose' }),
      shell('nonsense', { check: 'reward lots # millrace: allow reward-word broken on purpose' }),
    );
    const records = await Promise.all(ids.map((id) => bed.ended(id)));
    for (const { id, state, failure, result } of records) {
      assert.deepEqual([id, state, failure?.blame, result?.reward], [id, 'failed', 'verifier', null]);
      assert.ok(result && result.turns === 1, 'the result so far is kept');
    }
    assert.ok(await bed.store.trajectory(ids[0]), 'and so is the trajectory');
  });

  test('a check that kills itself each time is reward 0, and one that is slow without the agent has none', async () => {
    await using bed = await WorkerBed.open();
    await bed.startWorker();
    const ids = await bed.submitAll(
      shell('killed', { check: 'kill -9 $$' }),
      shell('late', { check: 'sleep 60' }, { limits: { evaluate_timeout_s: 8 } }),
    );
    const records = await Promise.all(ids.map((id) => bed.ended(id)));
    assert.deepEqual(
      records.map(({ state, result, failure }) => [state, result?.reward, result?.score.end, failure?.code]),
      [
        ['done', 0, 'was killed by SIGKILL', undefined],
        ['failed', null, undefined, 'evaluate-timeout'],
      ],
    );
  });

  test('a check that fails is reward 0, and a check may report its own number', async () => {
    await using bed = await WorkerBed.open();
    await bed.startWorker();
    const ids = await bed.submitAll(shell('zero', { check: 'grep -q x nothing' }), shell('half', { check: 'reward 0.5; exit 1' }));
    const rewards = await Promise.all(ids.map(async (id) => (await bed.ended(id)).result?.reward));
    assert.deepEqual(rewards, [0, 0.5]);
  });

  test('an agent whose time is up stops as rollout_timeout, and its results are evaluated', async () => {
    await using bed = await WorkerBed.open({ policy: says(bash('echo 1 > started; sleep 60')) });
    await bed.startWorker();
    const id = await bed.submit(shell('slow', { check: 'grep -q 1 started' }, { limits: { run_timeout_s: 1 } }));
    const { result } = await bed.ended(id);
    assert.equal(result?.stop_reason, 'rollout_timeout');
    assert.equal(result?.reward, 1);
  });

  test('a command whose time is up is interrupted, and the model sees it', async () => {
    await using bed = await WorkerBed.open({ policy: says(bash('sleep 60'), finish()) });
    await bed.startWorker();
    const id = await bed.submit(shell('command', {}, { limits: { tool_timeout_s: 0.3 } }));
    await bed.ended(id);
    const observation = (await bed.store.trajectory(id))?.segments.find(({ kind }) => kind === 'observation');
    assert.match(observation?.text ?? '', /not done after 0\.3 s: interrupted/);
  });

  test('a rollout waits, uncharged, while there is no backend', async () => {
    await using bed = await WorkerBed.open({ policy: says('\\boxed{2}'), withoutBackend: true });
    await bed.startWorker();
    const id = await bed.submit({
      ...shell('patient'),
      scenario: 'math',
      task: { question: '1+1?', answer: '2' },
      limits: { run_timeout_s: 0.2 },
    });
    await bed.reach(id, 'run');
    await new Promise((resolve) => setTimeout(resolve, 1600));
    await bed.store.joinBackend(toRecord(bed.backend.url));
    const { result } = await bed.ended(id);
    assert.equal(result?.stop_reason, 'completed');
    assert.ok((result?.timings.run_ms ?? Number.NaN) < 1500);
  });

  test('a retryable failure is retried, counted and kept', async () => {
    let opened = 0;
    const full = new RolloutError('sandbox-start-failed', 'no space left on device');
    await using bed = await WorkerBed.open({
      driver: (real) => ({ ...real, open: (spec, options) => (opened++ < 2 ? Promise.reject(full) : real.open(spec, options)) }),
    });
    await bed.startWorker();
    const id = await bed.submit(shell('again'));
    const { state, retries, attempt, failures } = await bed.ended(id);
    assert.deepEqual([state, retries, attempt], ['done', 2, 3]);
    const seen = failures.map(({ code, blame, attempt: at }) => [code, blame, at]);
    assert.deepEqual(seen, [
      ['sandbox-start-failed', 'sandbox', 1],
      ['sandbox-start-failed', 'sandbox', 2],
    ]);
  });

  test('the last error of a backend and its time are in its record', async () => {
    await using bed = await WorkerBed.open();
    bed.backend.setFaults(scriptedFaults(['http-500']));
    const worker = await bed.startWorker();
    const startedAt = Date.now();
    const id = await bed.submit(shell('faulty'));
    assert.equal((await bed.ended(id)).state, 'done');
    await worker[Symbol.asyncDispose]();
    const [backend] = await bed.store.backends();
    assert.match(backend?.health?.error ?? '', /answered 500: .*EngineCore encountered an issue/);
    assert.ok((backend?.health?.errorAtMs ?? 0) >= startedAt);
    assert.equal(backend?.health?.brokenAtMs, undefined);
  });

  test('a sandbox that dies during run is blamed on the sandbox', async () => {
    await using bed = await WorkerBed.open({ policy: says(bash('sleep 60')) });
    await bed.startWorker();
    const id = await bed.submit(shell('dies', {}, { limits: { max_retries: 0 } }));
    await once(bed.backend.events, 'answer');
    // The first of them is process 1 of the sandbox; the others die with it.
    process.kill(Math.min(...(await processesInSandboxesOf(bed.runDir))), 'SIGKILL');
    const { state, failure } = await bed.ended(id);
    assert.deepEqual([state, failure?.code, failure?.stage], ['failed', 'sandbox-died', 'run']);
  });

  test('a rollout whose scenario this worker lacks goes to a machine that has it, and fails if there is none', async () => {
    await using bed = await WorkerBed.open();
    await bed.startWorker();
    const newer = (id: string) => ({ ...shell(id), scenario: 'newer' });
    assert.equal((await bed.ended(await bed.submit(newer('alone')))).failure?.code, 'unknown-scenario');
    const other = workerId.parse('other');
    await bed.store.registerWorker({ id: other, host: 'other', pid: 1 }, { leaseMs: 60_000 });
    const machine = { id: 'm', name: 'other', labels: {}, cpus: 1, memory_bytes: 1, scenarios: ['newer'] };
    await bed.store.renew(other, { leaseMs: 60_000, report: { ...makeReport(0), machine } });
    const id = await bed.submit(newer('two'));
    while ((await bed.store.get(id))?.requires === undefined) await wait(10);
    const [claimed] = await bed.store.claim(other, 1, { 'scenario:newer': 'loaded' });
    assert.deepEqual([claimed?.id, claimed?.retries], ['two', 0]);
  });
});
