// Imports one user's scenario module. It may lie in any folder: `millrace/scenario` and `zod` resolve to ours when the folder has none, and
// TypeScript is read as ES modules whatever its package.json says.

import { existsSync, statSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { extname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { findParts } from '@millrace/base/parts';
import { importPythonScenario } from '../python/python-scenario.ts';
import type { SidecarOptions } from '../python/sidecar.ts';
import type { Scenario } from '../scenario.ts';
import { describeImportError } from './import-error.ts';

const extensions = ['.ts', '.mts', '.js', '.mjs', '.py'];

/** Throws an Error that names the file and says what to do. */
export async function importScenario(path: string, options: SidecarOptions = {}): Promise<Scenario> {
  const file = resolve(path);
  checkFile(file);
  if (extname(file) === '.py') return await importPythonScenario(file, options);
  resolveOwnImports();
  const module: Record<string, unknown> = await import(pathToFileURL(file).href).catch((error: unknown) => {
    throw new Error(describeImportError(file, error), { cause: error });
  });
  if (!('scenario' in module)) throw new Error(describeMissing(file, Object.keys(module)));
  const { scenario } = module;
  const problems = findProblems(scenario);
  if (problems.length > 0) throw new Error(`${file}: its \`scenario\` cannot be used: ${problems.join('; ')}`);
  return scenario as Scenario;
}

function checkFile(file: string): void {
  const extension = extname(file);
  if (!existsSync(file)) throw new Error(`${file}: there is no such file; give the path of a scenario's .ts, .js or .py file`);
  if (statSync(file).isDirectory()) throw new Error(`${file} is a folder; give the path of the scenario's file in it`);
  if (!extensions.includes(extension))
    throw new Error(
      `${file}: a scenario is a file in TypeScript, JavaScript or Python (${extensions.join(', ')}), not ${extension || 'this'}`,
    );
}

/**
 * `millrace/scenario` is always ours, so that a scenario and the service agree. Of zod, the user's own copy comes first. A package.json as
 * `npm init` writes it would make CommonJS of TypeScript, which cannot import.
 */
function resolveOwnImports(): void {
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const fromHere = () => nextResolve(specifier, { ...context, parentURL: import.meta.url });
      if (specifier === 'millrace/scenario') return { url: findParts().scenario.href, shortCircuit: true };
      if (specifier !== 'zod' && !specifier.startsWith('zod/')) {
        const found = nextResolve(specifier, context);
        return found.format === 'commonjs-typescript' ? { ...found, format: 'module-typescript' } : found;
      }
      try {
        return nextResolve(specifier, context);
      } catch {
        return fromHere(); // the user's folder has no zod, or one without this entry
      }
    },
  });
}

function describeMissing(file: string, exported: readonly string[]): string {
  const wanted = 'write `export const scenario = defineScenario({ … })`';
  if (exported.includes('default')) return `${file} has a default export; a scenario is a named one: ${wanted}`;
  const seen = exported.length === 0 ? 'it exports nothing' : `it exports ${exported.join(', ')}`;
  return `${file} does not export a scenario (${seen}): ${wanted}`;
}

/** What a scenario in plain JavaScript may have got wrong. */
function findProblems(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [`it is ${value === null ? 'null' : typeof value}, not an object`];
  const read = (key: string): unknown => Reflect.get(value, key);
  const problems: string[] = [];
  const { name, task, prepare, aliases } = { name: read('name'), task: read('task'), prepare: read('prepare'), aliases: read('aliases') };
  if (typeof name !== 'string' || name === '' || name.length > 128) problems.push('`name` must be a string of 1 to 128 characters');
  if (!hasFunctions(task, ['safeParse', 'safeParseAsync'])) problems.push('`task` must be a zod 4 schema');
  for (const key of ['init', 'evaluate']) if (typeof read(key) !== 'function') problems.push(`\`${key}\` must be a function`);
  for (const key of ['sandbox', 'compact', 'collect', 'fromInstance'])
    if (!['function', 'undefined'].includes(typeof read(key))) problems.push(`\`${key}\` must be a function`);
  if (prepare !== undefined && !hasFunctions(prepare, ['key', 'run'])) problems.push('`prepare` must have the functions `key` and `run`');
  for (const key of ['prepare', 'collect'])
    if (read(key) !== undefined && read('sandbox') === undefined) problems.push(`\`${key}\` needs \`sandbox\``);
  if (aliases !== undefined && !(Array.isArray(aliases) && aliases.every((alias) => typeof alias === 'string')))
    problems.push('`aliases` must be a list of strings');
  return problems;
}

function hasFunctions(value: unknown, names: readonly string[]): boolean {
  return typeof value === 'object' && value !== null && names.every((name) => typeof Reflect.get(value, name) === 'function');
}
