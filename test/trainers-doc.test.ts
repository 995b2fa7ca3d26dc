// docs/trainers.md says what the tests of the trainers proved, no more and no less.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readProofs, renderProofs } from '../world/trainers/bed/proof-table.ts';

test('the table of docs/trainers.md is made from the proofs in world/trainers/proofs', () => {
  const page = readFileSync(join(import.meta.dirname, '../docs/trainers.md'), 'utf8');
  const [, rest = ''] = page.split('<!-- trainers -->\n');
  const [table] = rest.split('\n<!-- end of trainers -->');
  assert.equal(table, renderProofs(readProofs()), 'run node scripts/write-docs.ts');
});
