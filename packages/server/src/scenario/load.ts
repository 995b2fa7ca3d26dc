// The scenarios of a service: the built-in ones, and the user's own, loaded from files anywhere on the machine. A file that cannot be
// used is refused with its name, the line where there is one, and what to do.

import { importScenario } from './import-scenario.ts';
import { mathScenario } from './math.ts';
import { makeRewardScenario } from './reward-server.ts';
import type { Scenario } from './scenario.ts';
import { shellScenario } from './shell.ts';

export interface Scenarios {
  /** By name or alias. */
  get(name: string): Scenario | undefined;
  names(): readonly string[];
}

export interface BuiltInOptions {
  /** Where there are any, the scenario `reward-server` exists. */
  readonly rewardServers?: readonly string[];
}

/** Throws an Error that names the file and says what to do. */
export async function loadScenarios(paths: readonly string[], { rewardServers = [] }: BuiltInOptions = {}): Promise<Scenarios> {
  const own = await Promise.all(paths.map(importScenario));
  const byName = new Map<string, { readonly scenario: Scenario; readonly from: string }>();
  const add = (scenario: Scenario, from: string) => {
    for (const name of [scenario.name, ...(scenario.aliases ?? [])]) {
      const other = byName.get(name);
      if (other) throw new Error(`two scenarios are named ${name}: ${other.from} and ${from}`);
      byName.set(name, { scenario, from });
    }
  };
  const builtIn: readonly Scenario[] = [
    mathScenario,
    shellScenario,
    ...(rewardServers.length > 0 ? [makeRewardScenario(rewardServers)] : []),
  ];
  for (const scenario of builtIn) add(scenario, 'a built-in one');
  for (const [index, scenario] of own.entries()) add(scenario, paths[index] ?? '');
  return {
    get: (name) => byName.get(name)?.scenario,
    names: () => [...new Set([...byName.values()].map(({ scenario }) => scenario.name))],
  };
}
