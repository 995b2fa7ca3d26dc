// Published MCP servers: one on standard input and output inside the sandbox of an agent, and one on HTTP outside of it, through a worker.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chooseFreePort } from '@millrace/base/free-port';
import { probeBubblewrap } from '@millrace/sandbox';
import { defineScenario, type Opening } from '@millrace/scenarios';
import { makeTempFolder, renderCall, type TempFolder } from '@millrace/testkit/plain';
import { build } from 'esbuild';
import { z } from 'zod';
import { bash, finish, says, WorkerBed } from '../pipeline/worker-bed.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
/** Sandboxes see the machine's /usr. */
const skipInside = ['/usr/bin/node', '/usr/local/bin/node'].some(existsSync) ? false : 'this machine has no Node.js in /usr';
const packages = createRequire(import.meta.url);

const graph = { entities: [{ name: 'Ada', entityType: 'person', observations: ['wrote the first program'] }] };

async function messagesOf(bed: WorkerBed, id: Awaited<ReturnType<WorkerBed['submit']>>): Promise<string[]> {
  const trajectory = await bed.store.trajectory(id);
  return (trajectory?.segments ?? []).flatMap(({ messages }) =>
    messages.filter(({ role }) => role === 'tool').map(({ content }) => content),
  );
}

describe('published MCP servers', { skip }, () => {
  let folder: TempFolder;
  let memory: Buffer;

  before(async () => {
    folder = await makeTempFolder('mcp');
    const outfile = join(folder.path, 'memory.mjs');
    const entry = packages.resolve('@modelcontextprotocol/server-memory/dist/index.js');
    await build({
      entryPoints: [entry],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      logLevel: 'error',
      banner: { js: requireLine },
    });
    memory = await readFile(outfile);
  });
  after(() => folder[Symbol.asyncDispose]());

  test('server-memory works inside the sandbox, survives being killed by the agent, and ends with the sandbox', {
    skip: skipInside,
  }, async () => {
    const env = { MEMORY_FILE_PATH: '/workspace/memory.jsonl' };
    const tools: Opening['tools'] = [{ mcp: 'memory', command: ['node', '/workspace/memory.mjs'], env }, 'bash', 'finish'];
    const scenario = defineScenario({
      name: 'own',
      task: z.unknown(),
      sandbox: () => ({}),
      async init({ sandbox, signal }) {
        await sandbox.writeFile('/workspace/memory.mjs', memory, { signal });
        return { messages: [{ role: 'user', content: 'go' }], tools };
      },
      collect: ({ sandbox }) => sandbox.readFile('/workspace/memory.jsonl', { maxBytes: 10_000 }),
      evaluate: ({ artifact }) => ({ reward: artifact.includes('wrote the first program') ? 1 : 0 }),
    });
    const policy = says(
      renderCall('memory_create_entities', graph),
      renderCall('memory_search_nodes', { query: 'Ada' }),
      renderCall('memory_search_nodes', { query: 7 }),
      bash('for p in /proc/[0-9]*; do grep -qs memory.mjs $p/cmdline && kill -9 $(basename $p); done; echo killed'),
      renderCall('memory_read_graph', {}),
      renderCall('memory_read_graph', {}),
      finish(),
    );
    await using bed = await WorkerBed.open({ policy, scenarios: [scenario] });
    const id = await bed.submit({ id: 'r1', scenario: 'own', task: {}, limits: { max_retries: 0 } });
    await bed.startWorker();
    const record = await bed.ended(id);
    const [created, found, wrong, killed, lost, again] = await messagesOf(bed, id);
    assert.deepEqual([record.state, record.result?.reward], ['done', 1], JSON.stringify(record.failure));
    assert.match(created ?? '', /wrote the first program/);
    assert.match(found ?? '', /"name": "Ada"/);
    assert.match(wrong ?? '', /^\[error\]\n|^\[memory_search_nodes failed/);
    assert.match(killed ?? '', /^killed/);
    assert.match(lost ?? '', /^\[memory_read_graph failed: it ended with SIGKILL|^\[the connection to memory was lost/);
    assert.match(again ?? '', /"name": "Ada"/);
  });

  test('server-everything works over streamable HTTP, and a server that is gone is not blamed on the agent', async () => {
    await using server = await openEverything();
    const policy = says(
      renderCall('everything_echo', { message: 'hello' }),
      renderCall('everything_get-sum', { a: 2, b: 40 }),
      renderCall('everything_get-tiny-image', {}),
      renderCall('everything_get-sum', { a: 'two' }),
      finish('42'),
    );
    const tools = { mcp: { everything: { url: server.url, attempts: 2 } } };
    await using bed = await WorkerBed.open({ policy, tools });
    const task = {
      question: 'What is 2 + 40?',
      answer: '42',
      tools: [{ mcp: 'everything', only: ['echo', 'get-sum', 'get-tiny-image'] }, 'finish'],
    };
    const id = await bed.submit({ id: 'r1', scenario: 'math', task, limits: { max_retries: 0 } });
    await bed.startWorker();
    const record = await bed.ended(id);
    assert.deepEqual([record.state, record.result?.reward], ['done', 1], JSON.stringify(record.failure));
    const [echo, sum, image, wrong] = await messagesOf(bed, id);
    assert.equal(echo, 'Echo: hello');
    assert.match(sum ?? '', /42/);
    assert.match(image ?? '', /\[image image\/png, \d+ bytes, which cannot be shown\]/);
    assert.match(wrong ?? '', /failed|error/i);

    await server[Symbol.asyncDispose]();
    const late = await bed.ended(await bed.submit({ id: 'r2', scenario: 'math', task, limits: { max_retries: 1 } }));
    const { code, blame, attempt } = { ...late.failure, attempt: late.attempt };
    assert.deepEqual([late.state, late.result?.reward, code, blame, attempt], ['failed', null, 'tool-unavailable', 'sandbox', 2]);
  });
});

/** CommonJS packages in the bundle call `require`. */
const requireLine = "import { createRequire } from 'node:module'; const require = createRequire('/');";

async function openEverything() {
  const port = await chooseFreePort('127.0.0.1');
  const entry = packages.resolve('@modelcontextprotocol/server-everything/dist/index.js');
  const child = spawn(process.execPath, [entry, 'streamableHttp'], {
    env: { ...process.env, PORT: `${port}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const close = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  try {
    await listening(child);
  } catch (error) {
    await close();
    throw error;
  }
  return { url: `http://127.0.0.1:${port}/mcp`, [Symbol.asyncDispose]: close };
}

async function listening(child: ChildProcess): Promise<void> {
  let printed = '';
  for await (const chunk of child.stderr ?? []) {
    printed += chunk;
    if (/listening/i.test(printed)) return void child.stdout?.resume();
  }
  throw new Error(`server-everything did not start: ${printed}`);
}
