// `npm run test:versions [NAME…]`: the tests of the trainers' adapters on other versions of the trainers than those of the world tier. It
// is not part of CI, and installs each version in its own cache folder. What passes is written to world/versions/proofs.
// Names are parts of the names of cells, such as `openenv` or `py3.12`.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '@millrace/protocol';
import { z } from 'zod';
import { proofsVariable } from '../trainers/bed/proofs.ts';
import { pythonVariable } from '../trainers/bed/trainer-python.ts';
import { openEnvironment } from './environment.ts';
import { type Cell, matrix, nameOf } from './matrix.ts';
import { type VersionProof, versionProofsFolder } from './version-table.ts';

const wanted = process.argv.slice(2);
const cells = matrix.filter((cell) => wanted.length === 0 || wanted.some((part) => nameOf(cell).includes(part)));
const failures: string[] = [];
for (const cell of cells) {
  try {
    const proof = await proveCell(cell);
    console.log(`✔ ${nameOf(cell)}: ${proof.claims.length} claims`);
  } catch (error) {
    failures.push(nameOf(cell));
    console.log(`✖ ${nameOf(cell)}: ${messageOf(error)}`);
  }
}
const summary = `${cells.length - failures.length} of ${cells.length} versions`;
console.log(failures.length === 0 ? `✔ test:versions: ${summary}` : `✖ test:versions: ${summary}; failed: ${failures.join(', ')}`);
process.exitCode = failures.length === 0 && cells.length > 0 ? 0 : 1;

async function proveCell(cell: Cell): Promise<VersionProof> {
  const python = await openEnvironment(cell);
  const scratch = await mkdtemp(join(tmpdir(), 'versions-'));
  try {
    const proofs = join(scratch, 'proofs.json');
    const file = cell.test ?? join(import.meta.dirname, `../trainers/${cell.trainer}/${cell.trainer}.test.ts`);
    await runTests(file, { [pythonVariable]: python, [proofsVariable]: proofs });
    const { proofs: found } = z
      .object({ proofs: z.array(z.object({ claim: z.string() })) })
      .parse(JSON.parse(await readFile(proofs, 'utf8').catch(() => '{"proofs":[]}')));
    if (found.length === 0) throw new Error(`${file} proved nothing`);
    const { package: name, version, trainer } = cell;
    const date = new Date().toISOString().slice(0, 10);
    const proof = { trainer, package: name, version, python: versionOf(python), date, claims: found.map(({ claim }) => claim) };
    await mkdir(versionProofsFolder, { recursive: true });
    await writeFile(join(versionProofsFolder, `${nameOf(cell)}.json`), `${JSON.stringify(proof, undefined, 2)}\n`);
    return proof;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function runTests(file: string, variables: Readonly<Record<string, string>>): Promise<void> {
  const child = spawn(process.execPath, ['--test', file], { env: { ...process.env, ...variables }, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (data: Buffer) => {
    output = (output + data.toString()).slice(-6000);
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`its tests failed:\n${output}`);
}

function versionOf(python: string): string {
  const { stdout } = spawnSync(python, ['-c', 'import platform; print(platform.python_version())'], { encoding: 'utf8' });
  return stdout.trim();
}
