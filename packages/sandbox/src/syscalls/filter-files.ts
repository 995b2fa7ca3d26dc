// The filters of system calls as files in the run folder: one for sandboxes that may create user namespaces, one for all others.

import { writeFile } from 'node:fs/promises';
import { arch } from 'node:os';
import { join } from 'node:path';
import type { Granted } from '../grant.ts';
import { makeOnce } from '../run-folder/make-once.ts';
import { compileFilter } from './bpf.ts';
import { type CallRule, listRules, type PolicyOptions } from './policy.ts';
import { renderProfile } from './profile.ts';

/** The path of the filter for each kind of sandbox. */
export type FilterFiles = Readonly<Record<Granted['namespaces'], string>>;

/** For bwrap. Undefined on architectures without a table of numbers. */
export async function writePrograms(runDir: string, options: Pick<PolicyOptions, 'isMemoryBounded'>): Promise<FilterFiles | undefined> {
  const own = arch();
  if (own !== 'x64' && own !== 'arm64') return undefined;
  return writeFilters(runDir, options, (rules) => compileFilter(rules, own));
}

/** For Apptainer. */
export async function writeProfiles(runDir: string, options: Pick<PolicyOptions, 'isMemoryBounded'>): Promise<FilterFiles> {
  return writeFilters(runDir, options, (rules) => Buffer.from(JSON.stringify(renderProfile(rules))));
}

async function writeFilters(
  runDir: string,
  options: Omit<PolicyOptions, 'namespaces'>,
  render: (rules: readonly CallRule[]) => Buffer,
): Promise<FilterFiles> {
  const files = {
    none: render(listRules({ ...options, namespaces: false })),
    user: render(listRules({ ...options, namespaces: true })),
  };
  const content = Object.values(files).map((bytes) => bytes.toString('base64'));
  const folder = await makeOnce(runDir, { kind: 'filter', content }, async (scratch) => {
    for (const [name, bytes] of Object.entries(files)) await writeFile(join(scratch, name), bytes);
  });
  return { none: join(folder, 'none'), user: join(folder, 'user') };
}
