// `millrace eval` against a whole service with a fake backend: what it prints and writes, and that Ctrl-C and kill -9 lose nothing.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Client } from '@millrace/client';
import { type EvaluationView, evaluationTask, evaluationView } from '@millrace/protocol';
import { probeBubblewrap } from '@millrace/sandbox';
import { makeTempFolder, openFakeBackend, openFakeTokens, type Policy, qwen3Folder, TestService } from '@millrace/testkit';
import { z } from 'zod';
import { millrace, openIo } from '../fake-io.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

const count = 20;
const lines = Array.from({ length: count }, (_, index) => JSON.stringify({ question: `${index} + ${index}?`, answer: String(2 * index) }));

/** Solves every second task. */
const policy: Policy = ({ opening }) => {
  const [, number = ''] = /(\d+) \+ \d+/.exec(opening()) ?? [];
  return { text: `It is \\boxed{${Number(number) % 2 === 0 ? 2 * Number(number) : 'unknown'}}.` };
};

async function until(client: Client, isReached: (evaluation: EvaluationView) => boolean): Promise<EvaluationView> {
  for (;;) {
    for await (const one of client.evaluations.list()) if (isReached(one)) return one;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function readSamples(client: Client, id: string): Promise<Map<string, string | null>> {
  const ended = new Map<string, string | null>();
  for await (const { id: rollout, ended_at } of client.list({ prefix: `${id}:` })) ended.set(rollout, ended_at);
  return ended;
}

function checkDone(evaluation: EvaluationView): void {
  assert.equal(evaluation.state, 'done');
  assert.deepEqual(evaluation.samples, { total: 80, begun: 80, ended: 80, scored: 80, unscored: 0, correct: 40 });
  assert.equal(evaluation.mean.value, 0.5);
  assert.deepEqual(
    evaluation.pass_at.map(({ k, value }) => [k, value]),
    [
      [1, 0.5],
      [2, 0.5],
      [4, 0.5],
    ],
  );
}

describe('millrace eval and a real service', { skip }, () => {
  test('goes on from what is done after kill -9 of the service and after Ctrl-C, and reports every sample once', async () => {
    let isSlow = true;
    const latencyMs = ({ index }: { readonly index: number }) => (isSlow && index >= 8 ? 100 : 0);
    await using backend = await openFakeBackend({ policy, tokens: await openFakeTokens(), latencyMs });
    const pipeline = { runSlots: 2, leaseMs: 2000, retryDelayMs: 10 };
    await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder(), pipeline });
    await using folder = await makeTempFolder('eval');
    const { client, url } = service;
    await client.backends.join({ url: backend.url, policy_version: 3 });
    const file = join(folder.path, 'sums.jsonl');
    await writeFile(file, lines.join('\n'));
    const report = join(folder.path, 'report.json');
    const command = ['eval', file, '--scenario', 'math', '--n', '4', '--temperature', '0.5', '--max-tokens', '64'];
    const start = () => {
      const io = openIo({ env: { MILLRACE_URL: url } });
      return { io, ended: millrace(command, io) };
    };

    // Ctrl-C leaves the evaluation as it is.
    const first = start();
    const begun = await until(client, ({ samples }) => samples.ended >= 4);
    first.io.interrupt();
    const left = await first.ended;
    assert.equal(left.code, 1);
    assert.match(left.err, new RegExp(`The evaluation goes on. To follow it: millrace eval watch ${begun.id}\n`));
    assert.match(left.out, /state +open after .*, \d+ of 80 samples have ended/);

    // The same command continues it, and waits for a service that is killed and started again.
    const second = start();
    await until(client, ({ samples }) => samples.ended >= 12);
    await service.kill();
    isSlow = false;
    await service.start();
    const { code, out, err } = await second.ended;
    assert.deepEqual([code, err.includes(`continues evaluation ${begun.id}: `)], [0, true], err);
    assert.match(out, /mean reward +0\.5000 +±0\.1147 +0\.5000 +20\n/);
    assert.match(out, /pass@4 +0\.5000 +±0\.1147 +0\.5000 +20\n/);
    assert.match(out, /tasks +20 of math, 4 samples each\n.*temperature 0\.5, max_tokens 64, policy version 3\n/);
    checkDone(await client.evaluations.wait(begun.id));
    const samples = await readSamples(client, begun.id);
    assert.equal(samples.size, 80, 'no sample twice');

    // By its name it is found again after its end, and nothing runs.
    const generations = backend.generations;
    const shown = await millrace(['eval', 'show', begun.id, '--json', '--report', report], openIo({ env: { MILLRACE_URL: url } }));
    checkDone(evaluationView.parse(JSON.parse(shown.out)));
    const written = evaluationView.extend({ results: z.array(evaluationTask) }).parse(JSON.parse(await readFile(report, 'utf8')));
    assert.equal(written.results.length, count);
    assert.deepEqual(
      new Set(written.results.flatMap((one) => one.samples.map(({ reward }) => reward === Number(one.index % 2 === 0)))),
      new Set([true]),
    );
    assert.deepEqual(await readSamples(client, begun.id), samples);
    assert.equal(backend.generations, generations);

    // The same command starts a new evaluation once the first has ended: the weights may be others.
    const again = await start().ended;
    assert.equal(again.code, 0, again.err);
    const ids = (await Array.fromAsync(client.evaluations.list())).map(({ id }) => id);
    assert.equal(new Set(ids).size, 2);
  });
});
