// The harnesses of one machine, by name: each is installed when a rollout first asks for it.

import { raceSignal } from '@millrace/base/race';
import { RolloutError } from '@millrace/protocol';
import type { Harness } from '../harness.ts';
import { installHarness } from '../install-harness.ts';
import { harnessCatalog } from './catalog.ts';

export interface InstalledHarness {
  readonly harness: Harness;
  /** For `harness` of a sandbox's spec. */
  readonly folder: string;
}

/** The user's own, then those that come with Millrace and are not replaced by one of the same name. */
export function listHarnesses(own: readonly Harness[] = []): readonly Harness[] {
  return [...own, ...harnessCatalog.filter(({ name }) => !own.some((one) => one.name === name))];
}

export class HarnessShelf {
  readonly #runDir: string;
  readonly #harnesses: readonly Harness[];
  readonly #installing = new Map<string, Promise<string>>();

  /** `runDir`: the run folder of the driver that opens the sandboxes. */
  constructor(runDir: string, own: readonly Harness[] = []) {
    this.#runDir = runDir;
    this.#harnesses = listHarnesses(own);
  }

  /** Rollouts that ask at once wait for one installation; one that is cancelled does not end it. */
  async take(name: string, signal: AbortSignal): Promise<InstalledHarness> {
    const harness = this.#harnesses.find((one) => one.name === name);
    if (harness === undefined) throw new RolloutError('task-failed', `no harness of this machine is named ${name}`);
    const installing = this.#installing.get(name) ?? installHarness(harness, { runDir: this.#runDir });
    this.#installing.set(name, installing);
    installing.catch(() => this.#installing.delete(name)); // the next rollout tries again
    return { harness, folder: await raceSignal(installing, signal) };
  }
}
