// The tables of docs/training.md against what report.py prints for the logs of the runs.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';

const page = readFileSync(join(import.meta.dirname, '../../docs/training.md'), 'utf8');

test('every table on the page is what its command prints', () => {
  const commands = [...page.matchAll(/^`examples\/train-gpu\/report\.py (.+)`$/gm)].map(([, args = '']) => args.split(' '));
  assert.equal(commands.length, 11);
  for (const args of commands) {
    const table = execFileSync('python3', ['report.py', ...args], { cwd: import.meta.dirname, encoding: 'utf8' });
    assert.ok(page.includes(`\n${table}`), `the page does not have the table of report.py ${args.join(' ')}:\n${table}`);
  }
});

const toSeeds = (name: string) => ['', '-1', '-2'].map((seed) => `results/${name}${seed}.jsonl.gz`).join(',');

for (const [picture, program, ...args] of [
  ['training.svg', 'draw.py', toSeeds('math'), toSeeds('shell')],
  ['training-compared.svg', 'compare.py', 'results'],
] as const)
  test(`the picture ${picture} is what ${program} draws of them`, async () => {
    await using temp = await makeTempFolder('picture');
    const drawn = join(temp.path, picture);
    execFileSync('python3', [program, drawn, ...args], { cwd: import.meta.dirname });
    assert.equal(readFileSync(drawn, 'utf8'), readFileSync(join(import.meta.dirname, '../../docs/pictures', picture), 'utf8'));
  });
