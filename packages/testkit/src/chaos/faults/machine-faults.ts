// Faults of a machine that joined the service over a network of its own: the network is cut for longer than the lease, the machine dies
// with all of its workers, and its clock steps while those of the service and of the database do not.

import { setTimeout as pause } from 'node:timers/promises';
import type { MachineView } from '@millrace/protocol';
import type { ChaosKind } from '../scene/plan.ts';
import { between, type CauseFault, type ChaosMachine, type Scene, until } from '../scene/scene.ts';

/** A machine that gets no work, because another fault is under way, is hit as it is. */
const longestWaitMs = 20_000;
const longestStartMs = 600_000;
const dayMs = 86_400_000;

export const machineFaults = {
  /** Up to three leases: its rollouts run elsewhere before it is back, and what it then writes must change nothing. */
  async 'cut-network'(scene, { size, choice }) {
    const { machine, leaseMs } = scene;
    if (!machine) return false;
    await waitUntilBusy(scene, machine);
    const before = countTroubles(machine);
    machine.network.cut(choice < 0.5 ? 'down' : 'replies');
    let hasHit: boolean;
    try {
      hasHit = await isMissed(scene, { machine, forMs: between(1.2, 3, size) * leaseMs });
    } finally {
      machine.network.join();
    }
    // If the server was away meanwhile, the machine itself knows.
    return hasHit || (await until(() => countTroubles(machine) > before, longestWaitMs));
  },

  async 'kill-machine'(scene, { size }) {
    const { machine, leaseMs } = scene;
    if (!machine) return false;
    await waitUntilBusy(scene, machine);
    await machine.processes.kill();
    await pause(between(0, 2 * leaseMs, size));
    await startAgain(machine);
    return true;
  },

  /** From seconds to a month, in both directions; sometimes back to the true time. Time is the database's, so no one may notice. */
  async 'machine-clock'(scene, { size, choice }) {
    const { machine } = scene;
    if (!machine) return false;
    const awayMs = 2000 * ((30 * dayMs) / 2000) ** size;
    machine.preload.setClock(choice < 0.2 ? 0 : choice < 0.6 ? awayMs : -awayMs);
    await pause(1500);
    return (await machine.processes.workerPids()).length > 0;
  },
} as const satisfies Partial<Record<ChaosKind, CauseFault>>;

/** Undefined while the service does not answer, or does not know it. */
async function look({ service }: Scene, { processes }: ChaosMachine): Promise<MachineView | undefined> {
  const machines = await service.client.machines().catch(() => []); // another fault is under way
  const own = machines.filter(({ name }) => name === processes.name);
  return own.find(({ state }) => state === 'live') ?? own[0];
}

/** What its workers logged about calls that got no reply. */
function countTroubles({ log }: ChaosMachine): number {
  const counts = log.read();
  const events = ['store-connection-lost', 'store-stall', 'worker-fenced', 'rollout-fenced', 'rollout-failure'];
  return events.reduce((sum, event) => sum + (counts.get(event) ?? 0), 0);
}

async function waitUntilBusy(scene: Scene, machine: ChaosMachine): Promise<void> {
  const endsAt = performance.now() + longestWaitMs;
  while (((await look(scene, machine))?.held ?? 0) === 0 && performance.now() < endsAt) await pause(50);
}

/** Waits for the whole time. True if the service saw that the machine did not renew its leases. */
async function isMissed(scene: Scene, { machine, forMs }: { readonly machine: ChaosMachine; readonly forMs: number }): Promise<boolean> {
  let isSeen = false;
  for (const endsAt = performance.now() + forMs; performance.now() < endsAt; await pause(100)) {
    const seen = await look(scene, machine);
    if (seen && (seen.state === 'lost' || seen.heartbeat_age_ms > scene.leaseMs / 2)) isSeen = true;
  }
  return isSeen;
}

/** As the service manager of a machine would: it cannot join while the server or the database is away. */
async function startAgain({ processes }: ChaosMachine): Promise<void> {
  const endsAt = performance.now() + longestStartMs;
  for (;;) {
    try {
      return await processes.start();
    } catch (error) {
      if (performance.now() > endsAt) throw error;
    }
    await pause(500);
  }
}
