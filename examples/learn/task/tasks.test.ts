// The tasks and their score: an answer that was guessed earns nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeRandom } from '../model/random.ts';
import { animals } from '../model/vocabulary.ts';
import { followNotes, makeTask, scoreVisit } from './tasks.ts';

const task = { start: 'barn', rooms: { barn: 'cellar', cellar: 'fox', hall: 'owl' } };

test('a note that names a room leads on, one that names an animal ends the trail', () => {
  assert.deepEqual(followNotes(task), { trail: ['barn', 'cellar'], answer: 'fox' });
  assert.equal(followNotes({ start: 'barn', rooms: { barn: 'hall', hall: 'barn' } }), undefined);
  assert.equal(followNotes({ start: 'barn', rooms: {} }), undefined);
});

test('half of the reward is for the trail and half for the answer at its end', () => {
  const score = (answer: string, ...seen: readonly string[]) => scoreVisit(task, { seen, answer }).reward;
  assert.equal(score('fox', 'barn', 'cellar'), 1);
  assert.equal(score('owl', 'barn', 'cellar'), 0.5);
  assert.equal(score('fox', 'barn'), 0.25);
  assert.equal(score('fox'), 0);
  assert.equal(score('fox', 'hall', 'barn', 'cellar'), 0);
  assert.equal(score('fox', 'barn', 'cellar', 'hall', 'hall'), 0.75);
});

test('every task leads to an animal, and all animals are about equally frequent', () => {
  const random = makeRandom('tasks');
  const answers = Array.from({ length: 1200 }, () => followNotes(makeTask(random))?.answer);
  for (const animal of animals) {
    const share = answers.filter((answer) => answer === animal).length / answers.length;
    assert.ok(Math.abs(share - 1 / animals.length) < 0.05, `${animal}: ${share}`);
  }
});
