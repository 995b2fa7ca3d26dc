// The cost of the wire: the same executor, outside a sandbox, called over a Unix socket or over TCP on loopback.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RolloutError, shellRunReply } from '@millrace/protocol';
import { ExecutorClient } from '../../packages/sandbox/src/executor/executor-client.ts';

const executor = fileURLToPath(new URL(`../../packages/sandbox/dist/executor-${process.arch}`, import.meta.url));
const params = { timeout_ms: 60_000, cap_bytes: 1024 };

/** Alternates between both, so that they see the same load. */
export async function sampleExecutorCalls(count: number): Promise<{ unix: number[]; tcp: number[] }> {
  await using unix = await openLink('unix');
  await using tcp = await openLink('tcp');
  const samples: { unix: number[]; tcp: number[] } = { unix: [], tcp: [] };
  for (let index = -500; index < count; index += 1) {
    const [first, second] = [await unix.call(), await tcp.call()];
    if (index < 0) continue; // warm-up
    samples.unix.push(first);
    samples.tcp.push(second);
  }
  return samples;
}

interface Link extends AsyncDisposable {
  /** Returns how many milliseconds the call took. */
  call(): Promise<number>;
}

async function openLink(kind: 'unix' | 'tcp'): Promise<Link> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-'));
  await writeFile(join(folder, 'env.json'), JSON.stringify({ PATH: process.env.PATH ?? '', HOME: folder }));
  await writeFile(join(folder, 'limits.json'), '{}');
  const server = createServer({ noDelay: true });
  if (kind === 'unix') server.listen(join(folder, 'socket'));
  else server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = kind === 'unix' ? [] : [String((server.address() as AddressInfo).port)];
  const child = spawn(executor, [folder, folder, folder, folder, ...port], { stdio: 'inherit' });
  const [socket]: [Socket] = (await once(server, 'connection')) as [Socket];
  const client = new ExecutorClient(socket, { onBroken: (why) => console.error(why), isOwnLimit: () => true });
  await client.ready;
  const spec = { method: 'shell.run', params, body: Buffer.from(':'), reply: shellRunReply, maxBytes: 4096, deadlineMs: 60_000 } as const;
  return {
    async call() {
      const startMs = performance.now();
      await client.call(spec);
      return performance.now() - startMs;
    },
    async [Symbol.asyncDispose]() {
      client.close(new RolloutError('sandbox-died', 'the benchmark is over'));
      server.close();
      await once(child, 'exit');
      await rm(folder, { recursive: true });
    },
  };
}
