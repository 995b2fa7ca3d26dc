// When a cell is over, when it is interrupted, and which replies are rejected.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maxPythonImageBytes, maxPythonImages } from '@millrace/protocol';
import { maxImageBytes, maxImages, openCell } from '../../src/python/python-cell.ts';

const nothing = Buffer.alloc(0);
const begun = { head: { begun: true }, body: nothing };
const reply = { head: { images: [] }, body: nothing };
const marker = Buffer.from('\x1b]8517;nonce;1\x07');

function open() {
  const seen: string[] = [];
  const say = (what: string) => (chunk: Buffer) => void seen.push(`${what} ${chunk}`);
  const cell = openCell('nonce', {
    onOutput: say('output'),
    onLate: say('late'),
    onEnd: (end) => void seen.push(`end ${end.alive && end.failed}`),
    interrupt: () => void seen.push('interrupt'),
  });
  return { cell, seen };
}

test('a cell is over when both its output and its reply have arrived, in either order', () => {
  const [first, second] = [open(), open()];
  for (const { cell } of [first, second]) cell.takeFrame(begun);
  first.cell.takeOutput(Buffer.concat([Buffer.from('x'), marker, Buffer.from('y')]));
  first.cell.takeFrame(reply);
  assert.deepEqual(first.seen, ['output x', 'late y', 'end true']);
  second.cell.takeFrame(reply);
  second.cell.takeOutput(marker);
  assert.deepEqual(second.seen, ['end true']);
});

test('an interrupt waits until its cell has begun, and is sent once', () => {
  const { cell, seen } = open();
  cell.interrupt();
  assert.deepEqual(seen, []);
  cell.takeFrame(begun);
  cell.takeFrame(reply);
  assert.deepEqual(seen, ['interrupt']);
});

test('a reply that no host sends is rejected', () => {
  const forged: unknown[] = [
    {},
    { images: [{ mime: 1, bytes: 0 }] },
    { images: [{ mime: 'image/png', bytes: 3 }] },
    {
      images: [
        { mime: 'image/png', bytes: -1 },
        { mime: 'image/png', bytes: 1 },
      ],
    },
    { images: Array.from({ length: 17 }, () => ({ mime: 'image/png', bytes: 0 })) },
  ];
  for (const head of forged) {
    const { cell } = open();
    cell.takeFrame(begun);
    assert.throws(() => cell.takeFrame({ head, body: nothing }), JSON.stringify(head));
  }
  const { cell } = open();
  cell.takeFrame(begun);
  const bytes = (4 << 20) + 1;
  assert.throws(() => cell.takeFrame({ head: { images: [{ mime: 'image/png', bytes }] }, body: Buffer.alloc(bytes) }));
});

test('the executor and the worker agree on the limits of images', () => {
  assert.deepEqual([maxImages, maxImageBytes], [maxPythonImages, maxPythonImageBytes]);
});
