// Faults around the service: the clock of its processes steps, webhooks are dead or slow, verifiers hang, backends fail.

import { rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Fault } from '../../fake-backend/faults.ts';
import { hangFile, hungFile } from '../scene/chaos-play.ts';
import type { ChaosKind, PlannedFault } from '../scene/plan.ts';
import { between, type CauseFault, type Scene, until } from '../scene/scene.ts';

const longestWaitMs = 6000;
const dayMs = 86_400_000;
/** PostgreSQL's own timeouts, deadlock detection among them, fire late by as much as its date stepped back. */
const longestDatabaseStepMs = 20_000;

export const edgeFaults = {
  /** From 2 s to 30 days from the true time, in both directions, and sometimes back to it; for PostgreSQL, up to 20 s. */
  async 'clock-step'({ preload, log, database }, { size, choice }) {
    const before = log.count('clock-jump');
    const awayMs = 2000 * ((database ? longestDatabaseStepMs : 30 * dayMs) / 2000) ** size;
    preload.setClock(choice < 0.2 ? 0 : choice < 0.6 ? awayMs : -awayMs);
    await pause(1500);
    return await until(() => log.count('clock-jump') > before, longestWaitMs);
  },

  async 'webhook-dead'({ receiver }, fault) {
    return await disturbReceiver(receiver, { kind: 'dead' }, fault);
  },

  async 'webhook-slow'({ receiver }, fault) {
    return await disturbReceiver(receiver, { kind: 'slow', ms: between(500, 4000, fault.choice) }, fault);
  },

  async 'verifier-hang'({ controls }, { size }) {
    const before = countHung(controls);
    writeFileSync(join(controls, hangFile), '');
    try {
      const hasHit = await until(() => countHung(controls) > before, longestWaitMs);
      await pause(between(100, 1500, size));
      return hasHit;
    } finally {
      rmSync(join(controls, hangFile));
    }
  },

  'backend-reset': (scene, fault) => disturbBackend(scene, fault, fault.choice < 0.5 ? 'reset' : 'cut'),
  'backend-hang': (scene, fault) => disturbBackend(scene, fault, fault.choice < 0.5 ? 'hang' : 'stuck'),
  'backend-error': (scene, fault) => disturbBackend(scene, fault, fault.choice < 0.5 ? 'http-500' : 'garbage'),
} as const satisfies Partial<Record<ChaosKind, CauseFault>>;

async function disturbReceiver(receiver: Scene['receiver'], mode: Parameters<typeof receiver.setMode>[0], { size }: PlannedFault) {
  const before = receiver.disturbed;
  receiver.setMode(mode);
  try {
    const hasHit = await until(() => receiver.disturbed > before, longestWaitMs);
    await pause(between(100, 1500, size));
    return hasHit;
  } finally {
    receiver.setMode({ kind: 'well' });
  }
}

function countHung(controls: string): number {
  return statSync(join(controls, hungFile), { throwIfNoEntry: false })?.size ?? 0;
}

/** One backend at a time, the other one stays well. */
async function disturbBackend({ backends }: Scene, { size }: PlannedFault, kind: Fault): Promise<boolean> {
  const backend = backends[size < 0.5 ? 0 : 1];
  let hits = 0;
  backend?.setFaults(() => {
    hits += 1;
    return kind;
  });
  try {
    const hasHit = await until(() => hits > 0, longestWaitMs);
    await pause(between(200, 1200, (2 * size) % 1));
    return hasHit;
  } finally {
    backend?.setFaults(undefined);
  }
}
