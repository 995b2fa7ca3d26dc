// The scenarios that a service knows: the built-in ones, and the user's own from module paths.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { mathScenario } from './math.ts';
import type { Scenario } from './scenario.ts';
import { shellScenario } from './shell.ts';

export interface Scenarios {
  /** By name or alias. */
  get(name: string): Scenario | undefined;
  names(): readonly string[];
}

/** Throws an Error that names the file when a module does not export a scenario, or two have one name. */
export async function loadScenarios(paths: readonly string[]): Promise<Scenarios> {
  const builtIn: readonly Scenario[] = [erase(mathScenario), erase(shellScenario)];
  const own = await Promise.all(paths.map(loadScenario));
  const byName = new Map<string, Scenario>();
  for (const scenario of [...builtIn, ...own]) {
    for (const name of [scenario.name, ...(scenario.aliases ?? [])]) {
      if (byName.has(name)) throw new Error(`two scenarios are named ${name}`);
      byName.set(name, scenario);
    }
  }
  return { get: (name) => byName.get(name), names: () => [...new Set([...byName.values()].map((scenario) => scenario.name))] };
}

async function loadScenario(path: string): Promise<Scenario> {
  const module: { scenario?: unknown } = await import(pathToFileURL(resolve(path)).href);
  const { scenario } = module;
  if (!isScenario(scenario))
    throw new Error(`${path} does not export a scenario: \`export const scenario: Scenario = { name, task, init, evaluate }\``);
  return scenario;
}

function isScenario(value: unknown): value is Scenario {
  if (typeof value !== 'object' || value === null) return false;
  const has = (key: string, type: string) => key in value && typeof Reflect.get(value, key) === type;
  return has('name', 'string') && has('task', 'object') && has('init', 'function') && has('evaluate', 'function');
}

/** The pipeline parses a task with the scenario's own schema before any of its functions see it, so the task's type may be forgotten here. */
function erase<Task>(scenario: Scenario<Task>): Scenario {
  return scenario as Scenario;
}
