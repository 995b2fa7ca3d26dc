// Environments of GEM, SkyRL-Gym and OpenEnv, from PyPI, are played through the whole service in real sandboxes to rewards that are known: a solved
// puzzle, a right and a wrong answer, a game that is lost.

import assert from 'node:assert/strict';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { openClient } from '@millrace/client';
import { openServer, openWorker, readConfig } from '@millrace/server';
import { makeTempFolder, openFakeBackend, openFakeTokens, qwen3Folder, scriptedPolicy } from '@millrace/testkit';
import { openPython } from '../engines/python-packages.ts';
import { gymPackages } from './gym-packages.ts';

/** Without its user interface. */
const openEnvPackages = {
  name: 'gym-openenv',
  packages: ['fastapi==0.116.2', 'fastmcp<4', 'websockets', 'requests'],
  alone: ['openenv==0.10.0'],
};

/** Three disks from A to C. */
const hanoi = ['A C', 'A B', 'C B', 'A C', 'B A', 'B C', 'A C'].map((move) => `I move \\boxed{${move}}.`);

const policy = scriptedPolicy([
  { match: /Hanoi/, turns: hanoi },
  { match: /Guess The Number/, turns: ['I do not know.'] },
  { match: /16 eggs/, turns: ['She sells 9 eggs and makes 18.\n#### 18'] },
  { match: /17 eggs/, turns: ['#### 19'] },
  { match: /AIME/, turns: ['Answer: 42'] },
  { match: /Echo environment ready/, turns: ['hello', 'a longer message'] },
]);

const skyrl = (env: string, question: string, truth: string) => ({
  kind: 'skyrl',
  env,
  args: { extras: { reward_spec: { ground_truth: truth }, reward_model: { ground_truth: truth } } },
  prompt: [{ role: 'user', content: question }],
  reward_range: [-1, 1],
});

interface Play {
  readonly id: string;
  readonly task: Record<string, unknown>;
  readonly reward: number;
  readonly steps: number;
  readonly turns?: number;
}

const plays: readonly Play[] = [
  { id: 'hanoi', task: { kind: 'gem', env: 'game:TowerofHanoi-v0-easy', seed: 1 }, reward: 1, steps: 7 },
  { id: 'lost', task: { kind: 'gem', env: 'game:GuessTheNumber-v0-easy', seed: 1, reward_range: [-1, 1] }, reward: -0.1, steps: 1 },
  { id: 'right', task: skyrl('gsm8k', 'She has 16 eggs.', '18'), reward: 1, steps: 1 },
  { id: 'wrong', task: skyrl('gsm8k', 'She has 17 eggs.', '18'), reward: 0, steps: 1 },
  { id: 'aime', task: skyrl('aime', 'An AIME problem.', '42'), reward: 1, steps: 1 },
];

const echo = {
  kind: 'openenv',
  env: 'echo_env.server.echo_env_environment:EchoEnvironment',
  action: 'echo_env.models:EchoAction',
  seed: 1,
  reward_range: [0, 2],
};

const echoPlays: readonly Play[] = [
  { id: 'one', task: echo, reward: 0.5, steps: 1, turns: 1 },
  { id: 'two', task: echo, reward: 1.5, steps: 2, turns: 2 },
  { id: 'last', task: { ...echo, reward: 'last' }, reward: 1, steps: 2, turns: 2 },
];

test('environments of GEM and SkyRL-Gym give the rewards that are known', { timeout: 900_000 }, async (context) => {
  await playAll(await sitePackagesOf(await openPython(gymPackages)), (line) => context.diagnostic(line), plays);
});

test("OpenEnv's own environment gives the rewards that are known", { timeout: 900_000 }, async (context) => {
  const site = await sitePackagesOf(await openPython(openEnvPackages));
  await using temporary = await makeTempFolder('gym');
  const folder = join(temporary.path, 'packages');
  await cp(site, folder, { recursive: true });
  await makeEchoEnvironment(folder);
  await playAll(folder, (line) => context.diagnostic(line), echoPlays);
});

async function playAll(folder: string, report: (line: string) => void, wanted: readonly Play[]): Promise<void> {
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
    wanted.map(({ id, task, turns = 10 }) => ({ id, scenario: 'gym', task, limits: { max_retries: 0, max_turns: turns }, group: 'all' })),
  );
  await using _worker = await openWorker(config, { log: silentLog });
  for (const { id, reward, steps } of wanted) {
    const view = await client.wait(id, {});
    report(`${id}: ${JSON.stringify(view.result?.score ?? view.failure)}`.slice(0, 400));
    assert.deepEqual([view.state, view.reward, view.result?.score?.steps], ['done', reward, steps], id);
  }
}

/** The environment that `openenv init` writes, from the files in the package: it repeats a message, and gives a tenth for each letter. */
async function makeEchoEnvironment(folder: string): Promise<void> {
  const template = join(folder, 'openenv/cli/templates/openenv_env');
  const names = { __ENV_NAME__: 'echo_env', __ENV_CLASS_NAME__: 'Echo', __ENV_TITLE_NAME__: 'Echo' };
  const fill = (text: string) => Object.entries(names).reduce((filled, [name, value]) => filled.replaceAll(name, value), text);
  await mkdir(join(folder, 'echo_env/server'), { recursive: true });
  for (const file of ['models.py', 'server/__ENV_NAME___environment.py'])
    await writeFile(join(folder, 'echo_env', fill(file)), fill(await readFile(join(template, file), 'utf8')));
  for (const inner of ['echo_env', 'echo_env/server']) await writeFile(join(folder, inner, '__init__.py'), '');
}

async function sitePackagesOf(python: string): Promise<string> {
  const library = join(dirname(python), '..', 'lib');
  const [version = ''] = await readdir(library);
  return join(library, version, 'site-packages');
}
