// Our template engine writes what transformers writes, for every published chat template and every conversation of ours.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readTemplates, renderReference, skipWithoutModels } from './collection.ts';
import { compareEngine, toTable } from './compare-templates.ts';
import { otherEngines, ours } from './template-engines.ts';

/** transformers cannot serialise the generator that `map` returns in this template; llama.cpp and we take it for a list. */
const known = /^llama\.cpp\/llama-cpp-deepseek-r1, .*: accepted: .*generator is not JSON serializable/;

test('our template engine agrees with transformers on all published templates', { skip: skipWithoutModels(), timeout: 600_000 }, () => {
  const templates = readTemplates();
  const reference = renderReference(templates);
  const comparison = compareEngine(ours, templates, reference);
  console.log(toTable([comparison, ...otherEngines().map((engine) => compareEngine(engine, templates, reference))]));
  assert.ok(templates.size >= 100, `only ${templates.size} templates`);
  assert.deepEqual(
    comparison.differences.filter((difference) => !known.test(difference)),
    [],
  );
});
