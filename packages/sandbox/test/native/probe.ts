// Builds the parts of the executor that read what an agent wrote, with the compiler's sanitizers, as a filter for tests.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { listSources } from '../../../../scripts/build-executor.ts';

const folder = await makeTempFolder('probe');
after(() => folder[Symbol.asyncDispose]());
const native = join(import.meta.dirname, '../../native');
const file = join(folder.path, 'probe');
const flags = ['-std=c11', '-D_GNU_SOURCE', '-g', '-O1', '-fsanitize=address,undefined', '-fno-sanitize-recover=all'];
const sources = [...listSources().filter((path) => !path.endsWith('/native/main.c')), ...globSync(join(native, 'test/*.c'))];
execFileSync('cc', [...flags, '-o', file, ...sources]);

/** Runs one part over the input; fails if a sanitizer or a claim of the fuzzer does. */
export function runProbe(args: readonly (string | number)[], input: Buffer | string = ''): { stdout: Buffer; stderr: string } {
  const { status, stdout, stderr } = spawnSync(file, args.map(String), { input, maxBuffer: 1 << 28 });
  assert.equal(status, 0, stderr.toString());
  return { stdout, stderr: stderr.toString() };
}
