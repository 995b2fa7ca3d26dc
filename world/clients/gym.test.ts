// Environments of GEM and SkyRL-Gym, from PyPI, are played through the whole service in real sandboxes to rewards that are known: a solved
// puzzle, a right and a wrong answer, a game that is lost.

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { openClient } from '@millrace/client';
import { openServer, openWorker, readConfig, silentLog } from '@millrace/server';
import { makeTempFolder, openFakeBackend, openFakeTokens, qwen3Folder, scriptedPolicy } from '@millrace/testkit';
import { openPython } from '../engines/python-packages.ts';

const packages = { name: 'gym', packages: ['gem-llm==0.1.0', 'skyrl-gym==0.4.0'] };

/** Three disks from A to C. */
const hanoi = ['A C', 'A B', 'C B', 'A C', 'B A', 'B C', 'A C'].map((move) => `I move \\boxed{${move}}.`);

const policy = scriptedPolicy([
  { match: /Hanoi/, turns: hanoi },
  { match: /Guess The Number/, turns: ['I do not know.'] },
  { match: /16 eggs/, turns: ['She sells 9 eggs and makes 18.\n#### 18'] },
  { match: /17 eggs/, turns: ['#### 19'] },
  { match: /AIME/, turns: ['Answer: 42'] },
]);

const skyrl = (env: string, question: string, truth: string) => ({
  kind: 'skyrl',
  env,
  args: { extras: { reward_spec: { ground_truth: truth }, reward_model: { ground_truth: truth } } },
  prompt: [{ role: 'user', content: question }],
  reward_range: [-1, 1],
});

const plays: readonly { readonly id: string; readonly task: Record<string, unknown>; readonly reward: number; readonly steps: number }[] = [
  { id: 'hanoi', task: { kind: 'gem', env: 'game:TowerofHanoi-v0-easy', seed: 1 }, reward: 1, steps: 7 },
  { id: 'lost', task: { kind: 'gem', env: 'game:GuessTheNumber-v0-easy', seed: 1, reward_range: [-1, 1] }, reward: -0.1, steps: 1 },
  { id: 'right', task: skyrl('gsm8k', 'She has 16 eggs.', '18'), reward: 1, steps: 1 },
  { id: 'wrong', task: skyrl('gsm8k', 'She has 17 eggs.', '18'), reward: 0, steps: 1 },
  { id: 'aime', task: skyrl('aime', 'An AIME problem.', '42'), reward: 1, steps: 1 },
];

test('environments of GEM and SkyRL-Gym give the rewards that are known', { timeout: 900_000 }, async (context) => {
  const folder = await sitePackagesOf(await openPython(packages));
  await using temporary = await makeTempFolder('gym');
  const config = readConfig(undefined, {
    data: join(temporary.path, 'data'),
    run: join(temporary.path, 'run'),
    'model.tokenizer': qwen3Folder(),
    'http.host': '127.0.0.1',
    'http.port': 0,
    'gym.packages': folder,
    'sandbox.limits.diskMiB': 2048,
  });
  await using backend = await openFakeBackend({ policy, tokens: await openFakeTokens() });
  await using server = await openServer(config, { log: silentLog });
  await using client = openClient({ url: await server.listen() });
  await client.backends.join({ url: backend.url });
  await client.submit(
    plays.map(({ id, task }) => ({ id, scenario: 'gym', task, limits: { max_retries: 0, max_turns: 10 }, group: 'all' })),
  );
  await using _worker = await openWorker(config, { log: silentLog });
  for (const { id, reward, steps } of plays) {
    const view = await client.wait(id, {});
    context.diagnostic(`${id}: ${JSON.stringify(view.result?.score ?? view.failure)}`.slice(0, 400));
    assert.deepEqual([view.state, view.reward, view.result?.score?.steps], ['done', reward, steps], id);
  }
});

async function sitePackagesOf(python: string): Promise<string> {
  const library = join(dirname(python), '..', 'lib');
  const [version = ''] = await readdir(library);
  return join(library, version, 'site-packages');
}
