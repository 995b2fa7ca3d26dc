// Task files: read by offset, in an order that is a function of seed and round, and drawn through a durable cursor.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { batchId } from '@millrace/protocol';
import { makeBatch, makeTempFolder } from '@millrace/testkit';
import { checkSource } from '../../src/batches/draw-tasks.ts';
import { shuffle, TaskFiles } from '../../src/batches/task-files.ts';
import { openBatchBed, scenarios } from './simulated-batches.ts';

const folder = await makeTempFolder('millrace-tasks');
after(() => folder[Symbol.asyncDispose]());
const write = async (name: string, text: string) => {
  const path = join(folder.path, name);
  await writeFile(path, text);
  return path;
};
const line = (question: string) => JSON.stringify({ question, answer: '2' });

test('lines are read by position; blank lines and a missing last newline do not matter', async () => {
  const files = new TaskFiles({ f: await write('f.jsonl', `${line('π')}\n\n  \n${line('b')}\r\n${line('c')}`) });
  assert.equal(await files.count('f'), 3);
  const read = async (position: number, more = {}) => (await files.read({ file: 'f', ...more }, position))?.text.trim();
  assert.deepEqual([await read(0), await read(1), await read(2), await read(3)], [line('π'), line('b'), line('c'), line('π')]);
  assert.equal(await read(3, { rounds: 1 }), undefined);
});

test('a shuffled round has every line once, each round has its own order, and the same seed gives the same order', () => {
  const rounds = [0, 1].map((round) => [...shuffle(100, { seed: 7, round })]);
  for (const order of rounds)
    assert.deepEqual(
      order.toSorted((a, b) => a - b),
      Array.from({ length: 100 }, (_, index) => index),
    );
  assert.notDeepEqual(rounds[0], rounds[1]);
  assert.deepEqual([...shuffle(100, { seed: 7, round: 1 })], rounds[1]);
});

test('an empty file, an unknown file and an invalid first line are refused with the field', async () => {
  await using bed = await openBatchBed({ slots: 1, course: () => ({ seconds: 1, tokens: 1, reward: 1 }) });
  const files = new TaskFiles({
    empty: await write('e.jsonl', '\n'),
    bad: await write('bad.jsonl', '{"question": 1}\n'),
    gone: join(folder.path, 'gone'),
  });
  const refused = async (file: string, message: RegExp) => {
    const { plan } = makeBatch('b', { count: 0, source: { file } });
    await assert.rejects(checkSource({ plan }, { store: bed.store, files, scenarios }), { message });
  };
  await refused('empty', /source\.file: empty has no tasks/);
  await refused('unknown', /source\.file: no task file is named "unknown"; known: empty, bad, gone/);
  await refused('bad', /source\.file: line 1 of bad: question/);
  await refused('gone', /source\.file: gone cannot be read/);
});

test('batches with the same cursor continue where the last one stopped; an invalid line is skipped with an event', async () => {
  const tasks = Array.from({ length: 12 }, (_, index) => (index === 3 ? 'nonsense' : line(`${index}`)));
  const path = await write('stream.jsonl', tasks.join('\n'));
  let given = 0;
  await using bed = await openBatchBed({
    slots: 2,
    files: { stream: path },
    course: () => ({ seconds: 1, tokens: 1, reward: given++ % 2 }),
  });
  for (const id of ['a', 'b']) {
    await bed.begin(id, { count: 0, series: 's', target: 4, source: { file: 'stream', rounds: 1 } });
    assert.equal((await bed.fill(id))?.state, 'met');
  }
  const indexes = await Promise.all(
    ['a', 'b'].map(async (id) =>
      (await bed.store.deliveredGroups(batchId.parse(id), { after: 0, limit: 9 })).map(({ taskIndex }) => taskIndex),
    ),
  );
  assert.deepEqual(
    indexes.flat().toSorted((x, y) => x - y),
    [0, 1, 2, 4, 5, 6, 7, 8],
  );
  const { events } = await bed.store.events(0, { limit: 99, kinds: ['task-skip'] });
  assert.deepEqual(
    events.map(({ data }) => [data.file, data.line]),
    [['stream', 4]],
  );
  await bed.begin('c', { count: 0, series: 's', target: 9, source: { file: 'stream', rounds: 1 } });
  const last = await bed.fill('c');
  assert.deepEqual([last?.state, last?.groups.delivered], ['short', 3]);
});
