// Every published template is proven, or refused for a reason of its own, and every tokenizer of a family gives the ids of the reference;
// docs/models.md says the same.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { skipWithoutTokenizers } from '../tokenizers/collection.ts';
import { skipWithoutModels } from './collection.ts';
import { countVerdicts, proveAll, renderModelsDoc } from './write-models-doc.ts';

test('published templates are proven or refused, and docs/models.md is up to date', {
  skip: skipWithoutModels() || skipWithoutTokenizers(),
  timeout: 600_000,
}, async () => {
  const proof = await proveAll();
  const counts = countVerdicts(proof.rows);
  console.log({ templates: proof.rows.length, ...counts });
  assert.equal(counts.differs, 0);
  assert.equal(counts['refused: format'], 0);
  assert.deepEqual(
    [...proof.tokenizers].filter(([, verdict]) => !verdict.startsWith('proven')),
    [],
  );
  const page = new URL('../../docs/models.md', import.meta.url);
  assert.equal(renderModelsDoc(proof), readFileSync(page, 'utf8'), 'run node world/models/write-models-doc.ts');
});
