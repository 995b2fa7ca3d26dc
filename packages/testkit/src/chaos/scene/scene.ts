// What the faults of a chaos run act on, and the small steps that they share.

import { setTimeout as pause } from 'node:timers/promises';
import type { FakeBackend } from '../../fake-backend/fake-backend.ts';
import type { PostgresServer } from '../../postgres/postgres-server.ts';
import type { TestMachine } from '../../service/machine.ts';
import type { TestService } from '../../service/service.ts';
import type { LogCounts } from './log-counts.ts';
import type { MachineNetwork } from './machine-network.ts';
import type { PlannedFault } from './plan.ts';
import type { Preload } from './preload.ts';
import type { Receiver } from './receiver.ts';
import type { SmallDisk } from './small-disk.ts';

export interface Scene {
  readonly service: TestService;
  readonly leaseMs: number;
  /** The folder that verifiers look into. */
  readonly controls: string;
  readonly preload: Preload;
  readonly receiver: Receiver;
  readonly backends: readonly FakeBackend[];
  readonly log: LogCounts;
  /** Absent if the store is SQLite's. */
  readonly database?: PostgresServer;
  /** Absent if this process cannot mount one. */
  readonly disk?: SmallDisk;
  /** Absent if the store is SQLite's, or if this process cannot make a network. */
  readonly machine?: ChaosMachine;
}

/** Workers that joined the service from another network, with a clock of their own. */
export interface ChaosMachine {
  readonly processes: TestMachine;
  readonly network: MachineNetwork;
  readonly preload: Preload;
  readonly log: LogCounts;
}

/** Causes the fault and undoes it. Resolves with whether it is known to have reached the service. */
export type CauseFault = (scene: Scene, fault: PlannedFault) => Promise<boolean>;

/** A number between two, from a fault's `size`. */
export function between(least: number, most: number, size: number): number {
  return least + (most - least) * size;
}

/** Waits until the evidence is there, and no longer than `mostMs`. */
export async function until(hasHappened: () => boolean, mostMs: number): Promise<boolean> {
  const endsAt = performance.now() + mostMs;
  while (!hasHappened() && performance.now() < endsAt) await pause(20);
  return hasHappened();
}
