// examples/search: Search-R1's loop in TypeScript and in Python, through a real worker. The dates and the sampling of its turns are in the
// trajectory.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Policy } from '@millrace/testkit';
import { WorkerBed } from '../pipeline/worker-bed.ts';

const folder = new URL('../../../../examples/search/', import.meta.url);
const found = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']);
const needsPython = found.status === 0 ? false : 'Python 3.9 or later is not installed';

/** Searches twice, then answers; after each stop string it would write more. */
const policy: Policy = (input) => {
  const prompt = input.decode();
  if (prompt.includes('2.1 million')) return { text: 'So it is <answer> 2.1 million </answer> and I go on' };
  return { text: prompt.includes('capital of France.<') ? '<search>people in paris</search>!' : 'Hm. <search>capital of France</search>?' };
};

for (const [file, scenario] of [
  ['scenario.ts', 'search'],
  ['scenario.py', 'search-python'],
] as const)
  test(`${file} searches inside of one turn, and every token that was sampled is in the trajectory once`, {
    skip: file.endsWith('.py') && needsPython,
  }, async () => {
    const [line = ''] = (await readFile(new URL('tasks.jsonl', folder), 'utf8')).split('\n');
    await using bed = await WorkerBed.open({ scenarioFiles: [fileURLToPath(new URL(file, folder))], policy });
    await bed.startWorker();
    const id = await bed.submit({ ...JSON.parse(line), scenario, id: 'r1', group: 'g', date: '2026-01-31' });
    const ended = await bed.ended(id);
    assert.deepEqual([ended.state, ended.result?.reward, ended.result?.turns], ['done', 1, 3]);
    const { segments, provenances } = (await bed.store.trajectory(id)) ?? assert.fail();
    assert.deepEqual(
      segments.map(({ kind, stopped_by }) => [kind, stopped_by]),
      [
        ['prompt', undefined],
        ['sampled', '</search>'],
        ['observation', undefined],
        ['sampled', '</search>'],
        ['observation', undefined],
        ['sampled', '</answer>'],
      ],
    );
    const turn = segments.slice(1).map(({ text }) => text);
    assert.match(
      turn.join(''),
      /^Hm\. <search>capital of France<\/search>\??\n\n<information>Paris is the capital of France\.<\/information>\n\n<search>/,
    );
    assert.deepEqual(segments.at(-1)?.messages, [{ role: 'assistant', content: turn.join('') }]);
    const [{ sampling, date } = assert.fail()] = provenances ?? [];
    assert.deepEqual([provenances?.length, sampling.stop, date], [1, ['</search>', '</answer>'], '2026-01-31T00:00:00.000Z']);
  });
