// What the kernel refuses is a limit of the sandbox only if its own groups show it.

import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { openOwnLimit } from '../../src/limits/own-limit.ts';

/** A folder with the files of a group, as the kernel writes them. */
async function openGroup(files: Readonly<Record<string, string>>) {
  const folder = await makeTempFolder('own-limit');
  await mkdir(join(folder.path, 's'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder.path, 's', name), text);
  const bases = (['pids', 'memory'] as const).map((controller) => ({ controller, version: 2 as const, folder: folder.path }));
  return { isOwn: openOwnLimit(bases, { name: 's', folder: folder.path }), [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

const cases: readonly (readonly [what: string, errno: string, files: Readonly<Record<string, string>>, isOwn: boolean])[] = [
  ['no process, and the group never met its limit', 'EAGAIN', { 'pids.events': 'max 0\n' }, false],
  ['no process, and the group met its limit', 'EAGAIN', { 'pids.events': 'max 3\n' }, true],
  [
    'no process, and only a group above met its limit',
    'EAGAIN',
    { 'pids.events': 'max 3\n', 'pids.peak': '9\n', 'pids.max': '100\n' },
    false,
  ],
  [
    'no process, and the group had as many as it may',
    'EAGAIN',
    { 'pids.events': 'max 0\n', 'pids.peak': '100\n', 'pids.max': '100\n' },
    true,
  ],
  ['no memory, and the group never met its limit', 'ENOMEM', { 'memory.events': 'low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n' }, false],
  ['no memory, and the group met its limit', 'ENOMEM', { 'memory.events': 'low 0\nhigh 0\nmax 7\noom 0\noom_kill 0\n' }, true],
  ['no memory, and the group of an old kernel met its limit', 'ENOMEM', { 'memory.failcnt': '12\n' }, true],
  ['no open file in the whole machine', 'ENFILE', {}, false],
  ['no open file in a process', 'EMFILE', {}, true],
  ['a full disk on a machine that has room', 'ENOSPC', {}, true],
];

for (const [what, errno, files, isOwn] of cases)
  test(`${what}: ${isOwn ? 'a limit of the sandbox' : 'no limit of the sandbox'}`, async () => {
    await using group = await openGroup(files);
    assert.equal(group.isOwn(errno), isOwn);
  });

test('a full disk on a machine without room is no limit of the sandbox', () => {
  for (const errno of ['ENOSPC', 'EDQUOT']) assert.equal(openOwnLimit([], { name: 's', folder: '/proc' })(errno), false, errno);
});

test('without control groups, the limits of single processes are all there is', () => {
  const isOwn = openOwnLimit([], { name: 's', folder: '/tmp' });
  assert.deepEqual(['EAGAIN', 'ENOMEM', undefined].map(isOwn), [true, true, true]);
});
