// How long this machine takes to wake two idle processes: one byte to another Node process over a Unix socket and back, after both have
// been idle for a while. Every call through a socket costs at least this.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export async function sampleIdleEcho(count: number, idleMs: number): Promise<number[]> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-'));
  const path = join(folder, 'socket');
  const server = createServer().listen(path);
  const child = fork(fileURLToPath(import.meta.url), [path]);
  const [socket] = await once(server, 'connection');
  const samples: number[] = [];
  for (let index = 0; index < count; index += 1) {
    await pause(idleMs);
    const startMs = performance.now();
    socket.write('x');
    await once(socket, 'data');
    samples.push(performance.now() - startMs);
  }
  child.kill();
  server.close();
  await rm(folder, { recursive: true });
  return samples;
}

if (import.meta.main) {
  const socket = connect(process.argv[2] ?? '');
  socket.on('data', (data) => socket.write(data));
}
