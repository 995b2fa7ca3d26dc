// Every published template is proven, or refused for a reason of its own; docs/models.md says the same.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { skipWithoutModels } from './collection.ts';
import { countVerdicts, proveAll, renderModelsDoc } from './write-models-doc.ts';

test('published templates are proven or refused, and docs/models.md is up to date', {
  skip: skipWithoutModels(),
  timeout: 300_000,
}, async () => {
  const rows = await proveAll();
  console.log({ templates: rows.length, ...countVerdicts(rows) });
  const { differs } = countVerdicts(rows);
  assert.equal(differs, 0);
  const page = new URL('../../docs/models.md', import.meta.url);
  assert.equal(renderModelsDoc(rows), readFileSync(page, 'utf8'), 'run node world/models/write-models-doc.ts');
});
