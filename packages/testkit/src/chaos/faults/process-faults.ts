// Faults of processes: a worker or the server is killed, or stopped for longer than its lease.

import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type { ChaosKind } from '../scene/plan.ts';
import { between, type CauseFault, type Scene } from '../scene/scene.ts';

/** As the service manager of a machine would. A start takes seconds, and fails if the disk is full at any moment of it. */
const longestStartMs = 600_000;

export const processFaults = {
  async 'kill-worker'(scene, { choice }) {
    return send(await findBusyWorker(scene, choice), 'SIGKILL');
  },

  async 'kill-server'(scene, { choice }) {
    await findBusyWorker(scene, choice);
    await scene.service.kill();
    await restart(scene);
    return true;
  },

  async 'stop-worker'(scene, { choice, size }) {
    return await stopFor(await findBusyWorker(scene, choice), between(1.2, 2, size) * scene.leaseMs);
  },

  async 'stop-server'(scene, { choice, size }) {
    await findBusyWorker(scene, choice);
    return await stopFor(scene.service.pid, between(1.2, 2, size) * scene.leaseMs);
  },
} as const satisfies Partial<Record<ChaosKind, CauseFault>>;

/** A server that cannot start, because the disk is full for example, is started again. */
async function restart({ service }: Scene): Promise<void> {
  const endsAt = performance.now() + longestStartMs;
  for (;;) {
    try {
      return await service.start();
    } catch (error) {
      if (performance.now() > endsAt) throw error;
    }
    await pause(500);
  }
}

async function stopFor(pid: number, ms: number): Promise<boolean> {
  const isStopped = send(pid, 'SIGSTOP');
  try {
    await pause(ms);
  } finally {
    send(pid, 'SIGCONT');
  }
  return isStopped;
}

/** False if it has ended. */
function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** The pid of a live worker with live rollouts: a fault that hits nothing proves nothing. */
async function findBusyWorker({ service }: Scene, choice: number): Promise<number> {
  for (;;) {
    const busy = await listBusyWorkers(service.client);
    const pid = busy[Math.floor(choice * busy.length)];
    if (pid !== undefined) return pid;
    await pause(50);
  }
}

async function listBusyWorkers(client: Scene['service']['client']): Promise<number[]> {
  try {
    const { workers } = await client.status();
    const pids = workers.filter(({ alive, report }) => alive && report !== null && report.held > 0).map(({ pid }) => pid);
    const live = await Promise.all(pids.map(isWorker));
    return pids.filter((_, index) => live[index]);
  } catch {
    return []; // another fault is under way
  }
}

/** A pid may have been reused: only a process that runs a worker counts. */
export async function isWorker(pid: number): Promise<boolean> {
  const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''); // it is gone
  return line.includes('worker-main');
}
