// ProRL Agent's task registry: which of our scenarios runs the instances of each `data_source`. A scenario of the user that has the data
// source as its name or alias comes first.

import type { Scenario, Scenarios } from '@millrace/scenarios';
import { toFault, toFaultError } from '../request/check.ts';

const swe = ['swebench', 'swebench_multimodal', 'swegym', 'swe-gym', 'SWE-Gym', 'r2egym', 'R2E-Gym', 'swe_smith', 'SWE-smith'];
const code = ['deepcoder', 'codecontests', 'apps', 'codeforces', 'taco', 'livecodebench'];
/** Tasks that only its reward servers can score. */
const scoredElsewhere = ['rStar', 'tool_call', 'if_eval', 'llm_judge', 'reasoning_gym'];
const screen = ['gui', 'visual_browsing', 'browsergym', 'osworld', 'near'];

type DataSourceRow = readonly [string, readonly string[]];

/** The scenarios of each data source, best first. */
const table: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ['deepscaler', ['math', 'reward-server']],
  ['stem', ['stem', 'reward-server']],
  ...swe.map((name): DataSourceRow => [name, ['swe']]),
  ...code.map((name): DataSourceRow => [name, ['code', 'reward-server']]),
  ...scoredElsewhere.map((name): DataSourceRow => [name, ['reward-server']]),
]);

/** Those that may read the row, best first. Throws `unknown-scenario`, naming the scenario that is missing, if there is one. */
export function findScenarios(source: unknown, scenarios: Scenarios): readonly [Scenario, ...Scenario[]] {
  const name = typeof source === 'string' && source !== '' ? source : 'swebench';
  const wanted = table.get(name) ?? (name.startsWith('deepcoder') ? table.get('deepcoder') : undefined) ?? [];
  const own = scenarios.get(name);
  if (own && !wanted.includes(own.name)) return [own];
  const [first, ...others] = wanted.flatMap((candidate) => scenarios.get(candidate) ?? []);
  if (first) return [first, ...others];
  const known = [...scenarios.names()];
  const fault = toFault(['instance', 'data_source'], describe(name, wanted, known));
  throw toFaultError([fault], { code: 'unknown-scenario', details: { known } });
}

function describe(name: string, [first, ...others]: readonly string[], known: readonly string[]): string {
  const shown = JSON.stringify(name);
  if (screen.includes(name)) return `${shown} is not supported: it needs a screen or a browser, and sandboxes have none`;
  if (first === undefined) return `no scenario is named ${shown}; known: ${known.join(', ')}`;
  const server = [first, ...others].includes('reward-server') ? '; http.prorl.rewardServers would score it too' : '';
  return `${shown} maps to the scenario ${first}, which is not loaded: add a scenario with this name or alias to \`scenarios\`${server}`;
}
