// Our tool-call and reasoning parsers and vLLM's agree on what models write, and every difference is one that differences.ts explains.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { skipWithoutVllm } from '../../engines/vllm.ts';
import { families } from './cases.ts';
import { findDifference, isSameReading, parserDifferences } from './differences.ts';
import { nameOf, type ReadCase, readAll } from './run-parsers.ts';

test("vLLM's parsers agree on all turns but the explained ones", { skip: skipWithoutVllm(), timeout: 900_000 }, async (context) => {
  const rows = await readAll();
  const differing = rows.filter((one) => !isSameReading(one));
  for (const line of countFamilies(rows, differing)) context.diagnostic(line);
  const explained = differing.map((one) => ({ one, difference: findDifference(one) }));
  const count = (better: string) => explained.filter(({ difference }) => difference?.better === better).length;
  context.diagnostic(
    `${rows.length - differing.length} of ${rows.length} agree; ours is better on ${count('ours')}, theirs on ${count('theirs')}, ${count('tie')} are ties`,
  );
  assert.ok(rows.length >= 500);
  assert.deepEqual(
    explained.filter(({ difference }) => difference === undefined).map(({ one }) => one),
    [],
  );
  for (const rule of parserDifferences)
    assert.ok(
      explained.some(({ difference }) => difference === rule),
      `no case shows any more: ${rule.why}`,
    );
  assert.deepEqual(
    differing.filter(({ kind }) => kind === 'one call' || kind === 'parallel calls').map(({ name }) => name),
    [],
    'plain calls are read alike in every family',
  );
});

function countFamilies(rows: readonly ReadCase[], differing: readonly ReadCase[]): string[] {
  return families.map(({ ours }, at) => {
    const of = (list: readonly ReadCase[]) => list.filter(({ family }) => family === at).length;
    return `${nameOf(at)} and ${ours}: ${of(rows) - of(differing)} of ${of(rows)} agree`;
  });
}
