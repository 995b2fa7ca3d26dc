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
  assert.equal(commands.length, 5);
  for (const args of commands) {
    const table = execFileSync('python3', ['report.py', ...args], { cwd: import.meta.dirname, encoding: 'utf8' });
    assert.ok(page.includes(`\n${table}`), `the page does not have the table of report.py ${args.join(' ')}:\n${table}`);
  }
});

test('the picture is what draw.py draws of them', async () => {
  await using temp = await makeTempFolder('picture');
  const picture = join(temp.path, 'training.svg');
  const runs = ['results/math.jsonl.gz,results/math-1.jsonl.gz,results/math-2.jsonl.gz', 'results/shell.jsonl.gz'];
  execFileSync('python3', ['draw.py', picture, ...runs], { cwd: import.meta.dirname });
  assert.equal(readFileSync(picture, 'utf8'), readFileSync(join(import.meta.dirname, '../../docs/pictures/training.svg'), 'utf8'));
});
