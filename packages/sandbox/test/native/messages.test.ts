// What the executor reads from processes that an agent can write to, and the fuzzer of all its readers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maxPythonImageBytes, maxPythonImages } from '@millrace/protocol';
import { makeTempFolder } from '@millrace/testkit/plain';
import { encodeFrame } from '../../src/executor/wire/frames.ts';
import { runProbe } from './probe.ts';

const linesOf = (args: readonly (string | number)[], input: Buffer | string) =>
  runProbe(args, input).stdout.toString().split('\n').slice(0, -1);

test('frames arrive whole wherever they are cut or joined', () => {
  const frames = [encodeFrame({ id: 1 }, Buffer.from('abc')), encodeFrame('é'), encodeFrame([], Buffer.alloc(999, 7))];
  const bytes = Buffer.concat(frames);
  for (const chunkBytes of [1, 3, 8, 9, 500, bytes.length])
    assert.deepEqual(linesOf(['frames', chunkBytes], bytes), ['{"id":1} 3', '"é" 0', '[] 999']);
});

test('a frame that is too large is rejected from its lengths alone, and so is a head that is not JSON', () => {
  const large = encodeFrame({}, Buffer.alloc(1001)).subarray(0, 8);
  assert.deepEqual(linesOf(['frames', 8], large), ['invalid']);
  const heads = ['{', '{}x', '{"a":}', '[1,]', '01', '1.', '"\\x"', '"\n"', 'nul', '', '['.repeat(34) + ']'.repeat(34)];
  for (const head of heads) {
    const lengths = Buffer.alloc(8);
    lengths.writeUInt32BE(Buffer.byteLength(head));
    assert.deepEqual(linesOf(['frames', 100], Buffer.concat([lengths, Buffer.from(head)])), ['invalid'], head);
  }
});

test('messages of the Python parent are read, and a line that it would not send is refused', () => {
  const lines = [
    '{"event": "ready", "requests": 4, "replies": 5, "output": 7}',
    '{"event": "host", "pid": 9}',
    '{"event": "missing", "message": "no IPython"}',
  ];
  assert.deepEqual(linesOf(['messages'], lines.join('\n')), ['0 -1 4 5 7 ', '1 9 -1 -1 -1 ', '3 -1 -1 -1 -1 no IPython']);
  const refused = ['not JSON', 'null', '{"event": "other"}', '{}', '{"event": 1}', '[{"event": "exit"}]'];
  assert.deepEqual(
    linesOf(['messages'], refused.join('\n')),
    refused.map(() => 'refused'),
  );
});

test('numbers that are no file descriptor or process are none', () => {
  const line = '{"event": "ready", "requests": "../../1/mem", "replies": -1, "output": 1e99, "pid": 1.5}';
  assert.deepEqual(linesOf(['messages'], line), ['0 -1 -1 -1 -1 ']);
});

const readCell = (head: unknown, body: Buffer = Buffer.alloc(0)) =>
  linesOf(['cell'], Buffer.concat([encodeFrame({ begun: true }), encodeFrame(head, body)]));

test('the images of a cell are passed on', () => {
  assert.deepEqual(readCell({ images: [{ mime: 'image/png', bytes: 3 }] }, Buffer.from('abc')), [
    'taken',
    'taken',
    '[{"mime":"image/png","bytes":3}]',
  ]);
});

test('a reply that no host sends is rejected, at the limits of the protocol', () => {
  const image = (bytes: number) => ({ mime: 'image/png', bytes });
  const images = (count: number) => ({ images: Array.from({ length: count }, () => image(0)) });
  assert.equal(readCell(images(maxPythonImages))[1], 'taken');
  assert.equal(readCell({ images: [image(maxPythonImageBytes)] }, Buffer.alloc(maxPythonImageBytes))[1], 'taken');
  const forged: [head: unknown, body?: Buffer][] = [
    [{}],
    [{ images: {} }],
    [{ images: [{ mime: 1, bytes: 0 }] }],
    [{ images: [image(3)] }],
    [{ images: [image(-1), image(1)] }],
    [{ images: [image(0.5)] }],
    [images(maxPythonImages + 1)],
    [{ images: [image(maxPythonImageBytes + 1)] }, Buffer.alloc(maxPythonImageBytes + 1)],
  ];
  for (const [head, body] of forged) assert.equal(readCell(head, body)[1], 'refused', JSON.stringify(head));
});

test('a link inside its folder is kept, an absolute one becomes relative, and no other leaves the sandbox', () => {
  const target = (path: string, to: string) => linesOf(['links'], `${path} ${to}\n`)[0];
  assert.equal(target('node_modules/.bin/tsc', '../typescript/bin/tsc'), '../typescript/bin/tsc');
  assert.equal(target('a/b/link', '/workspace/c'), '../.././c');
  assert.equal(target('link', '/workspace'), '.');
  assert.equal(target('venv/bin/python3', '/usr/bin/python3'), '/usr/bin/python3');
  const outside = [
    ...['/proc/self/cmdline', '/dev/stdin', '/workspace/../proc/self/environ', '/workspace/a/../../etc/passwd', '/workspace2/x'],
    ...['../x', 'a/../../x', '/usr/bin/python3/../env', '/usr/bin/env'],
  ];
  for (const to of outside) assert.equal(target('link', to), 'none', to);
});

test('a bash that has not yet received its command is asked at once, and given up only after it had time', async () => {
  await using folder = await makeTempFolder('watch');
  const waitedMs = Number(runProbe(['watch', folder.path]).stdout);
  assert.ok(waitedMs >= 1500, `given up ${waitedMs} ms after it was asked`);
});

test('no order of connects, writes, acknowledgements, ends and resets breaks the loopback, or exceeds a window', (t) => {
  const seed = Number(process.env.MILLRACE_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
  t.diagnostic(`MILLRACE_FUZZ_SEED=${seed}`);
  assert.equal(runProbe(['fuzz-loopback', seed, 20_000]).stdout.toString(), '20000 rounds\n');
});

test('no input breaks a reader of the executor, or one of its claims', (t) => {
  const seed = Number(process.env.MILLRACE_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const rounds = Number(process.env.MILLRACE_FUZZ_ROUNDS ?? 20_000);
  t.diagnostic(`MILLRACE_FUZZ_SEED=${seed} MILLRACE_FUZZ_ROUNDS=${rounds}`);
  assert.equal(runProbe(['fuzz', seed, rounds]).stdout.toString(), `${rounds} inputs\n`);
});
