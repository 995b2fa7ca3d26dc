// A harness: an agent program of others, described as data. The text fields may hold placeholders, which are filled in for each run.

import { arch } from 'node:os';
import { RolloutError } from '@millrace/protocol';
import { z } from 'zod';
import { harnessFolder } from '../layout.ts';

/**
 * Placeholders: `{{url}}` (without a path), `{{key}}`, `{{model}}`, `{{prompt}}`, `{{home}}` (the harness's own folder), `{{arch}}` (x64 or
 * arm64) and `{{machine}}` (x86_64 or aarch64).
 */
export const harness = z.strictObject({
  name: z.string().regex(/^[a-z0-9-]+$/),
  /** Pinned, so that a result can be repeated. */
  registry: z.enum(['npm', 'pypi']),
  package: z.string(),
  version: z.string().regex(/^\d[\w.-]*$/),
  /** More packages, with their versions as the registry writes them. */
  with: z.array(z.string()).default([]),
  /**
   * What runs the program. It is installed with the harness and its libraries, so an image needs none of them. `none`: the program is an
   * executable, and an image needs the C library that it is linked with.
   */
  runtime: z.enum(['none', 'node', 'python']).default('none'),
  /** Below the folder of the installation. */
  program: z.string(),
  args: z.array(z.string()),
  /** What it reads from standard input; some take the prompt only there as it is. */
  stdin: z.string().default(''),
  env: z.record(z.string(), z.string()).default({}),
  /** Written below `{{home}}` before each run. */
  files: z.record(z.string(), z.string()).default({}),
  /** The API that it speaks to `{{url}}`. */
  wire: z.enum(['chat', 'responses', 'messages', 'gemini']),
  /** What its own processes need, without those of its tools. */
  memoryMiB: z.int().min(16),
});
export type Harness = z.infer<typeof harness>;

/** HOME of the harness. It is not the agent's /workspace, so that no file of the harness is part of the result. */
const harnessHome = '/tmp/harness';

export interface HarnessTask {
  /** Where the harness finds its model, such as http://127.0.0.1:8080. */
  readonly url: string;
  readonly key: string;
  readonly model: string;
  readonly prompt: string;
}

interface HarnessCommand {
  readonly argv: readonly string[];
  readonly stdin: string;
  readonly env: Readonly<Record<string, string>>;
  /** By their paths in the sandbox. */
  readonly files: Readonly<Record<string, string>>;
}

export function renderHarness(spec: Harness, task: HarnessTask): HarnessCommand {
  const values: Readonly<Record<string, string>> = { ...task, home: harnessHome, ...machineNames() };
  if (!/^[\w./:@-]+$/.test(task.model + task.key))
    throw new RolloutError(
      'sandbox-refused',
      `the model's name or the key has characters that configuration files cannot hold: ${task.model}`,
    );
  const fill = (text: string) =>
    text.replace(/\{\{(\w+)\}\}/g, (whole, name: string) => {
      const value = values[name];
      if (value !== undefined) return value;
      throw new RolloutError('sandbox-refused', `the harness ${spec.name} has the unknown placeholder ${whole}`);
    });
  const fillAll = (texts: Readonly<Record<string, string>>, prefix = '') =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [`${prefix}${name}`, fill(text)]));
  const program = `${harnessFolder}/${fill(spec.program)}`;
  const runtime = { none: [], node: [`${harnessFolder}/bin/node`], python: [`${harnessFolder}/bin/python3`] }[spec.runtime];
  return {
    argv: [...runtime, program, ...spec.args.map(fill)],
    stdin: fill(spec.stdin),
    env: { HOME: harnessHome, ...fillAll(spec.env) },
    files: fillAll(spec.files, `${harnessHome}/`),
  };
}

/** Node.js as an npm package. */
export const nodePackage = { name: `node-linux-${arch()}`, version: '24.21.0' };

function machineNames(): { readonly arch: string; readonly machine: string } {
  return { arch: arch(), machine: arch() === 'arm64' ? 'aarch64' : 'x86_64' };
}
