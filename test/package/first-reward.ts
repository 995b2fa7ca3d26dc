// The page's way from an empty folder and a running vLLM to the first reward: every command of that section, in order, as its reader types
// it. What differs is named here: where the package comes from, vLLM's port, and the port of the service.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chooseFreePort } from '@millrace/base/free-port';
import { type FakeBackend, openFakeBackend, openFakeTokens, qwen3Folder, renderCall } from '@millrace/testkit';
import { machinePath, needProgram, type ProgramOptions, userEnvironment } from './run-program.ts';

const heading = '## Ten minutes: the first reward of your own task\n';
const model = 'Qwen/Qwen3-8B';

interface Printed {
  /** What each block printed on standard output. */
  readonly blocks: readonly string[];
  readonly results: readonly { readonly id: string; readonly reward: number | null }[];
}

interface FirstRewardOptions {
  /** It must not exist yet. */
  readonly folder: string;
  readonly tarball: string;
  /** A running vLLM of this machine, and the model's name; a fake with a scripted agent by default. */
  readonly vllm?: { readonly url: string; readonly model: string };
}

export async function runFirstReward(page: string, options: FirstRewardOptions): Promise<Printed> {
  const blocks = readBlocks(page);
  await mkdir(join(options.folder, 'tmp'), { recursive: true });
  const path = join(options.folder, 'empty');
  await mkdir(path);
  await using fake = options.vllm ? undefined : await openVllm();
  const vllm = options.vllm ?? { url: fake?.url ?? '', model };
  const port = await chooseFreePort('127.0.0.1');
  const hub = join(options.folder, 'hub');
  if (fake) await fillHubCache(hub);
  const env = { MILLRACE_URL: `http://127.0.0.1:${port}`, HF_HUB_CACHE: hub, TMPDIR: join(options.folder, 'tmp') };
  const places: readonly [string, string][] = [
    ['npm install millrace', `npm install --prefer-offline --no-audit --no-fund ${options.tarball}`],
    ['http://127.0.0.1:8000', vllm.url],
    [model, vllm.model],
    ['npx millrace serve', `exec npx millrace serve --port ${port}`],
  ];
  const commands = blocks.map((block) => places.reduce((text, [written, meant]) => text.replaceAll(written, meant), block));
  for (const [written] of places) assert.ok(blocks.join('').includes(written), `the page says ${written}`);
  const printed: string[] = [];
  const service: ChildProcess[] = [];
  try {
    for (const command of commands) {
      const program = { cwd: path, env };
      if (command.includes('millrace serve')) service.push(await startService(command, program));
      else printed.push(await needProgram(['bash', '-euo', 'pipefail', '-c', command], program));
    }
  } finally {
    for (const child of service) await stopGroup(child);
  }
  const lines = (await readFile(join(path, 'results.jsonl'), 'utf8')).trim().split('\n');
  return { blocks: printed, results: lines.map((line) => JSON.parse(line)) };
}

function readBlocks(page: string): string[] {
  const [, rest = ''] = page.split(heading);
  const [section = ''] = rest.split('\n## ');
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block);
}

/** Counts the words with a command, and answers with what it printed. */
async function openVllm(): Promise<FakeBackend> {
  return await openFakeBackend({
    model,
    engine: 'vllm',
    tokens: await openFakeTokens(),
    policy(input) {
      if (input.turn === 0) return { text: renderCall('bash', { command: 'wc -w < text.txt' }) };
      return { text: renderCall('finish', { answer: /(\d+)\s*<\/tool_response>/.exec(input.tail(60))?.[1] ?? '' }) };
    },
  });
}

/** What `vllm serve` leaves in the hub cache of the machine that it runs on. */
async function fillHubCache(folder: string): Promise<void> {
  const repository = join(folder, `models--${model.replace('/', '--')}`);
  await mkdir(join(repository, 'refs'), { recursive: true });
  await mkdir(join(repository, 'snapshots'));
  await writeFile(join(repository, 'refs/main'), '0123abcd');
  await symlink(qwen3Folder(), join(repository, 'snapshots/0123abcd'));
}

/** Resolves when it listens; a reader waits for the same. */
async function startService(command: string, options: ProgramOptions): Promise<ChildProcess> {
  const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit'];
  const child = spawn('bash', ['-euo', 'pipefail', '-c', command], {
    cwd: options.cwd,
    env: userEnvironment(options),
    stdio,
    detached: true,
  });
  const [line]: unknown[] = await Promise.race([once(createInterface(child.stdout), 'line'), once(child, 'exit').then(() => [])]);
  if (typeof line === 'string') return child;
  throw new Error(`${command} did not start; PATH is ${machinePath().join(':')}`);
}

/** As Ctrl-C does: npx and the service have one group. */
async function stopGroup(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  process.kill(-(child.pid ?? 0), 'SIGINT');
  await ended;
}
