// The scenarios of a service: the built-in ones, and the user's own, loaded from files anywhere on the machine. A file that cannot be
// used is refused with its name, the line where there is one, and what to do.

import { codeScenario } from '../code/code.ts';
import { gatewayScenario } from '../gateway.ts';
import { makeGymScenario } from '../gym/gym.ts';
import type { GymConfig } from '../gym/gym-task.ts';
import { makeHarborScenario } from '../harbor/harbor.ts';
import { mathScenario } from '../math/math.ts';
import type { SidecarOptions } from '../python/sidecar.ts';
import { makeRewardScenario } from '../reward-server.ts';
import type { Scenario } from '../scenario.ts';
import { shellScenario } from '../shell.ts';
import { Judge } from '../stem/judge.ts';
import { type JudgeConfig, judgeConfig } from '../stem/judge-config.ts';
import { makeStemScenario } from '../stem/stem.ts';
import { makeSweScenario } from '../swe/swe.ts';
import { type OutsideConfig, outsideConfig } from '../tools/outside/outside-config.ts';
import { importScenario } from './import-scenario.ts';
import { withKnownTools } from './known-tools.ts';

export interface Scenarios {
  /** By name or alias. */
  get(name: string): Scenario | undefined;
  names(): readonly string[];
}

export interface BuiltInOptions {
  /** Where there are any, the scenario `reward-server` exists. */
  readonly rewardServers?: readonly string[];
  /** Without it, tasks that need a judge have no reward. */
  readonly judge?: JudgeConfig;
  readonly gym?: GymConfig;
  /** Tools from outside that tasks may choose. */
  readonly tools?: OutsideConfig;
  /** For scenarios in Python. */
  readonly python?: SidecarOptions;
}

/** Throws an Error that names the file and says what to do. */
export async function loadScenarios(paths: readonly string[], options: BuiltInOptions = {}): Promise<Scenarios> {
  const { rewardServers = [], judge = judgeConfig.parse({}), gym = {}, tools = outsideConfig.parse({}) } = options;
  const own = await Promise.all(paths.map((path) => importScenario(path, options.python)));
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
    codeScenario,
    makeStemScenario(new Judge(judge)),
    shellScenario,
    makeGymScenario(gym),
    makeSweScenario(),
    makeHarborScenario(),
    gatewayScenario,
    ...(rewardServers.length > 0 ? [makeRewardScenario(rewardServers)] : []),
  ];
  for (const scenario of builtIn) add(withKnownTools(scenario, tools), 'a built-in one');
  for (const [index, scenario] of own.entries()) add(scenario, paths[index] ?? '');
  return {
    get: (name) => byName.get(name)?.scenario,
    names: () => [...new Set([...byName.values()].map(({ scenario }) => scenario.name))],
  };
}
