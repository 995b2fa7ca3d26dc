// The example sets of math, code, stem and gym, made from packages on PyPI: the solution of every task passes, no solution fails,
// `millrace task check` says so, and agents that give these solutions, or wrong ones, get the rewards that are known.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { openClient } from '@millrace/client';
import { openServer, openWorker, readConfig } from '@millrace/server';
import { makeTempFolder, openFakeBackend, openFakeTokens, qwen3Folder, type Script, scriptedPolicy } from '@millrace/testkit';
import { z } from 'zod';
import { makeSet, type SetName } from '../../examples/sets/make.ts';
import { millrace, openIo } from '../../packages/cli/test/fake-io.ts';
import { worldCacheFolder } from '../engines/world-cache.ts';

const folder = join(worldCacheFolder(), 'sets-example-2');
const timeout = 900_000;

const report = z.object({
  total: z.number(),
  tasks: z.array(z.object({ task: z.string(), outcome: z.string(), why: z.string().optional() })),
});
const line = z.object({ id: z.string(), scenario: z.string(), task: z.record(z.string(), z.unknown()) });
type Line = z.infer<typeof line>;

interface Play extends Line {
  readonly turns: readonly string[];
  readonly isRight: boolean;
}

test('a set of competition problems: the reference solutions pass, and rewards are as expected', { timeout }, async (context) => {
  const lines = await readSet('math');
  assert.ok((await checkSet('math', lines, context)) >= 250);
  const some = lines.filter(({ task }) => task.solution !== undefined).slice(0, 12);
  await playAll([
    ...some.map((one) => mark(one, 'gold', [String(one.task.solution)])),
    ...lines.slice(-8).map((one) => mark(one, 'gold', [`So it is \\boxed{${one.task.answer}}.`])),
    ...some.slice(0, 4).map((one) => mark(one, 'wrong', [`So it is \\boxed{${one.task.answer} + 1}.`])),
  ]);
});

test('a set of science questions: the worked solutions pass, and rewards are as expected', { timeout }, async (context) => {
  const lines = await readSet('stem');
  assert.ok((await checkSet('stem', lines, context)) >= 130);
  const some = [...lines.slice(0, 8), ...lines.slice(-8)];
  const wrong = ({ task: { kind, answer } }: Line) => (kind === 'choice' ? (answer === 'A' ? 'B' : 'A') : `${Number(answer) * 1.5 + 7}`);
  await playAll([
    ...some.map((one) => mark(one, 'gold', [String(one.task.solution)])),
    ...some.map((one) => mark(one, 'wrong', [`\\boxed{${wrong(one)}}`])),
  ]);
});

test('a set of functions and a contest problem: the solutions pass, and rewards are as expected', { timeout }, async (context) => {
  const lines = await readSet('code');
  assert.ok(lines.length >= 140);
  const some = lines.filter((_, at) => at % 8 === 2 || at === lines.length - 1);
  await checkSet('code', some, context);
  const recorded = z
    .array(z.object({ id: z.string(), task: z.record(z.string(), z.unknown()), program: z.string(), reward: z.number() }))
    .parse(parseLines(await readFile(join(folder, 'code-recorded.jsonl'), 'utf8')));
  assert.equal(recorded.length, 5);
  await playAll([
    ...some.slice(0, 6).map((one) => mark(one, 'gold', [render(String(one.task.solution))])),
    ...some.slice(0, 6).map((one) => mark(one, 'wrong', [render(`${one.task.starter_code}    return "wrong"\n`)])),
    // What NeMo Gym measured for programs of a model, we measure too.
    ...recorded.map(({ program, reward, ...one }) =>
      mark({ scenario: 'code', ...one }, reward === 1 ? 'gold' : 'wrong', [render(program)]),
    ),
  ]);
});

test('a set of games and puzzles: the players win, and rewards are as expected', { timeout }, async (context) => {
  const lines = await readSet('gym');
  const some = lines.filter(({ id }) => !id.endsWith('hard-1'));
  await checkSet('gym', some, context);
  const solution = (one: Line) => z.array(z.string()).parse(one.task.solution);
  await playAll([
    ...some.slice(0, 5).map((one) => mark(one, 'gold', solution(one))),
    ...some.slice(-3).map((one) => mark(one, 'wrong', ['I do not know.'])),
  ]);
});

async function readSet(name: SetName): Promise<readonly Line[]> {
  return z.array(line).parse(parseLines(await readFile(await makeSet(name, folder), 'utf8')));
}

const parseLines = (text: string): unknown[] =>
  text
    .trim()
    .split('\n')
    .map((one) => JSON.parse(one));

const render = (program: string): string => `\`\`\`python\n${program}\n\`\`\``;

/** Returns how many tasks are right; all must be. */
async function checkSet(name: SetName, lines: readonly Line[], context: { diagnostic(text: string): void }): Promise<number> {
  await using temporary = await makeTempFolder('sets');
  const path = join(temporary.path, `${name}.jsonl`);
  await writeFile(path, lines.map((one) => `${JSON.stringify(one)}\n`).join(''));
  const config = name === 'gym' ? ['--config', join(folder, 'gym.json')] : [];
  const { code, out } = await millrace(['task', 'check', path, '--json', ...config], openIo());
  const { total, tasks } = report.parse(JSON.parse(out));
  const right = tasks.filter(({ outcome }) => outcome === 'right').length;
  context.diagnostic(`${name}: ${right} of ${total} tasks are right`);
  assert.deepEqual(
    tasks.filter(({ outcome }) => outcome !== 'right'),
    [],
  );
  assert.deepEqual([code, total], [0, lines.length]);
  return right;
}

/** The task with a mark in its opening, by which the policy knows what to say. */
function mark({ id, scenario, task }: Line, kind: 'gold' | 'wrong', turns: readonly string[]): Play {
  const name = `${kind}-${id}`;
  const marked = scenario === 'gym' ? { ...task, system: `<${name}>` } : { ...task, question: `<${name}> ${task.question}` };
  return { id: name, scenario, task: marked, turns, isRight: kind === 'gold' };
}

async function playAll(plays: readonly Play[]): Promise<void> {
  await using temporary = await makeTempFolder('sets');
  const scripts: Script[] = plays.map(({ id, turns }) => ({ match: new RegExp(`<${id}>`), turns }));
  const config = readConfig(undefined, {
    data: join(temporary.path, 'data'),
    run: join(temporary.path, 'run'),
    'model.tokenizer': qwen3Folder(),
    'http.host': '127.0.0.1',
    'http.port': 0,
    ...(plays[0]?.scenario === 'gym' ? { 'gym.packages': join(folder, 'gym-packages'), 'sandbox.limits.diskMiB': 2048 } : {}),
  });
  await using backend = await openFakeBackend({ policy: scriptedPolicy(scripts), tokens: await openFakeTokens() });
  await using server = await openServer(config, { log: silentLog });
  await using client = openClient({ url: await server.listen() });
  await client.backends.join({ url: backend.url });
  const limits = { max_retries: 0, max_turns: 60 };
  await client.submit(plays.map(({ id, scenario, task }) => ({ id, scenario, task, limits, group: 'all' })));
  await using _worker = await openWorker(config, { log: silentLog });
  for await (const { id, state, reward, failure } of client.results(plays.map((play) => play.id))) {
    const isRight = plays.find((play) => play.id === id)?.isRight;
    assert.deepEqual([id, state, failure], [id, 'done', null]);
    if (isRight) assert.equal(reward, 1, id);
    else assert.ok(reward !== null && reward <= 0, `${id}: ${reward}`);
  }
}
