// Claims about the processes that a server starts: what is tried again, what is not, and what is reported.

import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Fields, Log } from '@millrace/base/log';
import type { Store } from '@millrace/store';
import { makeTempFolder, waitUntilNoneRuns } from '@millrace/testkit/plain';
import { serviceConfig } from '../src/config.ts';
import { StartError } from '../src/service.ts';
import { Supervisor } from '../src/supervisor.ts';

interface Bed {
  readonly supervisor: Supervisor;
  readonly runDir: string;
  readonly warnings: { readonly event: string; readonly fields: Fields }[];
  /** Resolves when the log has this event. */
  logged(event: string): Promise<void>;
}

/** Workers that run the given module, which finds its IPC channel open. */
async function openBed(stack: AsyncDisposableStack, source: string, count = 2, leaseMs = 15_000): Promise<Bed> {
  const folder = stack.use(await makeTempFolder('supervisor'));
  const workerMain = join(folder.path, 'worker.mjs');
  await writeFile(
    workerMain,
    `process.on('message', () => {});\nconst report = (message) => new Promise((done) => process.send(message, done));\n${source}`,
  );
  const warnings: Bed['warnings'] = [];
  const waiting = new Map<string, () => void>();
  const keep = (event: string, fields: Fields = {}) => {
    warnings.push({ event, fields });
    waiting.get(event)?.();
  };
  const log: Log = { info() {}, warn: keep, error: keep };
  const store = { workers: async () => [] } as unknown as Store;
  const config = serviceConfig.parse({ run: folder.path, pipeline: { handBackMs: 0, leaseMs } });
  const supervisor = stack.use(new Supervisor({ count, config, store, log, logFormat: 'json', workerMain: pathToFileURL(workerMain) }));
  const logged = async (event: string) => {
    if (!warnings.some((warning) => warning.event === event)) await new Promise<void>((done) => waiting.set(event, done));
  };
  return { supervisor, runDir: folder.path, warnings, logged };
}

test('a worker that cannot start is not started again: the reason is reported, once', async () => {
  await using stack = new AsyncDisposableStack();
  const source = `await report({ kind: 'stopped', reason: 'no usable tokenizer' }); process.exit(78);`;
  const { supervisor, warnings } = await openBed(stack, source);
  await assert.rejects(supervisor.started, (error: Error) => error instanceof StartError && error.message === 'no usable tokenizer');
  assert.deepEqual(warnings, []);
});

test('before a first worker is ready, any stated reason is final', async () => {
  await using stack = new AsyncDisposableStack();
  const { supervisor } = await openBed(stack, `await report({ kind: 'stopped', reason: 'the disk is full' }); process.exit(1);`);
  await assert.rejects(supervisor.started, { message: 'the disk is full' });
});

test('workers that only ever crash without a word are given up after a few tries', async () => {
  await using stack = new AsyncDisposableStack();
  const { supervisor } = await openBed(stack, 'process.exit(9);', 1);
  await assert.rejects(supervisor.started, { message: /a worker ended with exit code 9 before it was ready, 3 times in a row/ });
});

test('a crash loop of a service that was up is reported once, not once for each try', async () => {
  await using stack = new AsyncDisposableStack();
  const source = `await report({ kind: 'ready' }); await report({ kind: 'stopped', reason: 'a bug', stack: 'Error: a bug' }); process.exit(1);`;
  const { supervisor, warnings, logged } = await openBed(stack, source, 1);
  await supervisor.started;
  await logged('worker-exit');
  const [first] = supervisor.pids;
  const deadline = performance.now() + 20_000;
  while ((supervisor.pids[0] ?? first) === first && performance.now() < deadline) await new Promise((done) => setTimeout(done, 20));
  assert.deepEqual(
    warnings.map(({ event, fields }) => [event, fields.reason]),
    [['worker-exit', 'a bug']],
  );
});

test('when the last worker of a running service cannot start again, the reason is reported', async () => {
  await using stack = new AsyncDisposableStack();
  const source = `await report({ kind: 'ready' }); await report({ kind: 'stopped', reason: 'the scenario is gone' }); process.exit(78);`;
  const { supervisor, warnings } = await openBed(stack, source, 2);
  assert.equal(await supervisor.failed, 'the scenario is gone');
  assert.deepEqual(
    warnings.map(({ event, fields }) => [event, fields.workersLeft]),
    [
      ['worker-cannot-start', 1],
      ['worker-cannot-start', 0],
    ],
  );
});

test('a worker whose event loop is blocked is killed and replaced, and one that reports is not', async () => {
  await using stack = new AsyncDisposableStack();
  const source = `
    import { mkdirSync } from 'node:fs';
    await report({ kind: 'ready' });
    try {
      mkdirSync(import.meta.dirname + '/was-here');
    } catch {
      setInterval(() => report({ kind: 'pulse' }), 500);
      await new Promise(() => {});
    }
    for (;;);`;
  const { supervisor, warnings, logged } = await openBed(stack, source, 2, 200);
  await supervisor.started;
  const [first, second] = supervisor.pids;
  await logged('worker-frozen');
  await logged('worker-exit');
  const frozen = warnings[0]?.fields.pid;
  assert.ok(frozen === first || frozen === second);
  assert.deepEqual(
    warnings.map(({ event, fields }) => [event, fields.pid, fields.signal]),
    [
      ['worker-frozen', frozen, undefined],
      ['worker-exit', frozen, 'SIGKILL'],
    ],
  );
  assert.ok(supervisor.pids.includes(Number(frozen === first ? second : first)), 'the other one lives');
});

test('what the last workers left in the run folder is removed when the service ends, with its processes', async () => {
  await using stack = new AsyncDisposableStack();
  const source = `
    import { spawn } from 'node:child_process';
    import { mkdirSync, readFileSync } from 'node:fs';
    const [startTicks] = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ').slice(19);
    const folder = import.meta.dirname + '/sb-' + process.pid + '-' + Number(startTicks).toString(36) + '-01234567';
    mkdirSync(folder);
    spawn('sh', ['-c', 'sleep 60; exit', folder + '/'], { detached: true, stdio: 'ignore' });
    await report({ kind: 'ready' });`;
  const { supervisor, runDir, warnings } = await openBed(stack, source, 1);
  await supervisor.started;
  await supervisor[Symbol.asyncDispose]();
  assert.deepEqual(await readdir(runDir), ['worker.mjs']);
  assert.deepEqual(warnings, [{ event: 'sandboxes-swept', fields: { count: 1 } }]);
  await waitUntilNoneRuns((text) => text.includes(`${runDir}/sb-`));
});
