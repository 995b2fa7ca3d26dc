// Replays the texts that once took their readers too long, and a few new ones. `npm run bench -- freeze` searches for more.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { makeRandom } from '@millrace/testkit/plain';
import { z } from 'zod';
import { measure, searchSlow } from './search.ts';
import { targets } from './targets.ts';

const corpus = z
  .array(z.strictObject({ target: z.string(), input: z.array(z.tuple([z.string(), z.int()])) }))
  .parse(JSON.parse(readFileSync(new URL('./corpus.json', import.meta.url), 'utf8')));

/** A core that other processes share is slower; what is not linear takes a hundred times as long. */
const busy = 10;

const mostOf = (target: string) => busy * (targets[target]?.mostMs ?? assert.fail(`there is no target ${target}`));

for (const { target, input } of corpus)
  test(`${target}: ${JSON.stringify(input).slice(0, 100)} takes linear time`, () => {
    const ms = measure(target, input);
    assert.ok(ms < mostOf(target), `${ms} ms`);
  });

test('ten seconds of texts that are made to be slow find none', () => {
  const start = performance.now();
  const slow = searchSlow({ random: makeRandom(7), now: () => performance.now(), untilMs: start + 10_000 });
  assert.deepEqual(
    slow.filter(({ target, ms }) => ms > mostOf(target)),
    [],
  );
});
