// With every published template that the service starts with, each prompt of a conversation that grows turn by turn is the text that the
// template writes for the whole of it, or a new branch with that text.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { skipWithoutModels } from '../collection.ts';
import { compareTurns, countSteps } from './turn-by-turn.ts';

test('turn by turn, every prompt is the whole conversation, branches included, and none is refused', {
  skip: skipWithoutModels(),
  timeout: 600_000,
}, async (context) => {
  const { steps, refused } = await compareTurns();
  context.diagnostic(JSON.stringify({ ...countSteps(steps), 'templates refused at the start': refused.size }));
  assert.ok(steps.length >= 4500, `only ${steps.length} steps`);
  assert.deepEqual(
    steps.filter(({ verdict }) => verdict === 'differs' || verdict === 'refused'),
    [],
  );
});
