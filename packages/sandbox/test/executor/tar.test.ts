// Archives from a sandbox cannot harm this machine: every known way for an archive to write elsewhere is closed.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { makeTempFolder, type TempFolder } from '@millrace/testkit/plain';
import { unpackTar } from '../../src/executor/tar-reader.ts';
import { packTar } from '../../src/executor/tar-writer.ts';
import { staysInside } from '../../src/executor/wire/inner-link.ts';

const limits = { maxBytes: 1 << 20, maxEntries: 100 };
let temp: TempFolder;
let base: string;
before(async () => {
  temp = await makeTempFolder('tar');
  base = temp.path;
});
after(() => temp[Symbol.asyncDispose]());

interface HostileEntry {
  readonly name: string;
  readonly type?: string;
  readonly target?: string;
  readonly content?: string;
  readonly size?: number;
  readonly mode?: number;
}

/** One entry, as a hostile program may write it. */
function make({ name, type = '0', target = '', content = '', size = content.length, mode = 0o644 }: HostileEntry): Buffer {
  const block = Buffer.alloc(512);
  block.write(name, 0, 100);
  block.write(`${mode.toString(8).padStart(7, '0')}\0`, 100);
  block.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  block.write(type, 156);
  block.write(target, 157, 100);
  writeSum(block);
  const body = Buffer.alloc(Math.ceil(content.length / 512) * 512);
  body.write(content);
  return Buffer.concat([block, body]);
}

function writeSum(block: Buffer): void {
  block.write('        ', 148);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
}

/** The same numbers in every run. */
function makeRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

async function* archive(...entries: HostileEntry[]): AsyncGenerator<Buffer> {
  const bytes = Buffer.concat([...entries.map(make), Buffer.alloc(1024)]);
  for (let at = 0; at < bytes.length; at += 100) yield bytes.subarray(at, at + 100); // chunks that do not match blocks
}

async function unpack(...entries: HostileEntry[]): Promise<{ folder: string; skipped: string[] }> {
  const folder = await mkdtemp(join(base, 'out-'));
  return { folder, skipped: await unpackTar(archive(...entries), folder, limits) };
}

const refused: [string, HostileEntry[]][] = [
  ['an absolute path', [{ name: '/tmp/out' }]],
  ['a path with ..', [{ name: 'a/../../out' }]],
  ['a folder with ..', [{ name: '../out', type: '5' }]],
  ['a hard link to a file of the machine', [{ name: 'a', type: '1', target: 'etc/passwd' }]],
  ['a hard link with ..', [{ name: 'a', type: '1', target: '../../etc/passwd' }]],
  ['a duplicate file', [{ name: 'a' }, { name: 'a' }]],
  ['a file in place of a folder', [{ name: 'a' }, { name: 'a/b' }]],
  ['a truncated file', [{ name: 'a', size: 100_000 }]],
  ['a negative size', [{ name: 'x', type: 'x', content: '13 size=-512\n' }, { name: 'a' }]],
  [
    'a fractional size',
    [
      { name: 'x', type: 'x', content: '12 size=1.5\n' },
      { name: 'a', content: 'xy' },
    ],
  ],
  ['a pax record with a false length', [{ name: 'x', type: 'x', content: '999 path=a\n' }, { name: 'a' }]],
  ['a NUL in a pax name', [{ name: 'x', type: 'x', content: '15 path=a\0../b\n' }, { name: 'a' }]],
  ['a long name of megabytes', [{ name: 'x', type: 'L', size: 1 << 24 }]],
  ['a GNU long name with ..', [{ name: 'x', type: 'L', content: '../out\0' }, { name: 'a' }]],
  ['an absolute pax name', [{ name: 'x', type: 'x', content: '18 path=/tmp/out\n\n' }, { name: 'a' }]],
  ['a sparse file', [{ name: 'x', type: 'x', content: '24 GNU.sparse.major=1.0\n' }, { name: 'a' }]],
];
for (const [what, entries] of refused) {
  test(`refused: ${what}`, async () => {
    await assert.rejects(unpack(...entries));
    assert.deepEqual(
      (await readdir(base)).filter((name) => name === 'out'),
      [],
    );
  });
}

test('an archive over the limits of size or entries is rejected before its content is written', async () => {
  await assert.rejects(unpack({ name: 'a', size: 2 ** 32 }), { code: 'artifact-too-large' });
  await assert.rejects(unpack(...Array.from({ length: 101 }, (_, index) => ({ name: `d${index}`, type: '5' }))), {
    code: 'artifact-too-large',
  });
});

test('an archive without its end is rejected, even if it is cut between two entries', async () => {
  const folder = await mkdtemp(join(base, 'out-'));
  for (const bytes of [Buffer.alloc(0), make({ name: 'a', content: 'x' })]) {
    await assert.rejects(unpackTar(chunksOf(bytes), folder, limits), { code: 'sandbox-refused', message: /less data/ });
  }
});

test('set-user-id bits are dropped', async () => {
  const { folder } = await unpack({ name: 'a', mode: 0o6755 });
  assert.equal((await stat(join(folder, 'a'))).mode & 0o7777, 0o755);
});

test('an archive with random changes is unpacked or rejected, and writes nothing outside its folder', async () => {
  const entries: HostileEntry[] = [
    { name: 'x', type: 'x', content: '18 path=long/name\n' },
    { name: 'a', content: 'content' },
    { name: 'd/l', type: '2', target: '../a' },
    { name: 'h', type: '1', target: 'a' },
  ];
  const whole = Buffer.concat([...entries.map(make), Buffer.alloc(1024)]);
  const before = await readdir(base);
  const random = makeRandom(1);
  for (let round = 0; round < 500; round += 1) {
    const bytes = Buffer.from(whole);
    for (let change = 0; change < 3; change += 1) bytes[random(bytes.length)] = random(256);
    for (let at = 0; at < bytes.length - 1024; at += 512) if (random(4) > 0) writeSum(bytes.subarray(at, at + 512));
    const folder = join(base, 'fuzz');
    await mkdir(folder);
    await unpackTar(chunksOf(bytes), folder, limits).catch((error) => assert.ok(error instanceof Error));
    await rm(folder, { recursive: true });
  }
  assert.deepEqual(await readdir(base), before);
});

test('devices, pipes and links that lead outside are left out and listed', async () => {
  const { folder, skipped } = await unpack(
    { name: 'disk', type: '4' },
    { name: 'zero', type: '3' },
    { name: 'pipe', type: '6' },
    { name: 'shadow', type: '2', target: '/etc/shadow' },
    { name: 'up', type: '2', target: '../up' },
    { name: 'kept', content: 'x' },
  );
  assert.deepEqual(await readdir(folder), ['kept']);
  assert.deepEqual(skipped, [
    'disk (block device)',
    'zero (character device)',
    'pipe (pipe)',
    'shadow (link to /etc/shadow, outside)',
    'up (link to ../up, outside)',
  ]);
});

test('nothing is written through a link, regardless of the order of entries', async () => {
  const { folder } = await unpack({ name: 'd', type: '5' }, { name: 'e/l', type: '2', target: '../d' }, { name: 'd/file', content: 'x' });
  assert.equal(await readFile(join(folder, 'e/l/file'), 'utf8'), 'x');
  await assert.rejects(unpack({ name: 'l', type: '2', target: 'd' }, { name: 'l/file', content: 'x' }));
  // The .. of a link inside a linked folder would be counted from the wrong place.
  const deep = { name: 'a/b/l', type: '2', target: '../..' };
  await assert.rejects(unpack(deep, { name: 'a/b/l/out', type: '2', target: '../../..' }));
});

test('a link may contain .. only at its beginning, and must not leave the folder', () => {
  assert.ok(staysInside('a/b', '../c'));
  assert.ok(staysInside('a', 'b/c'));
  for (const target of ['', '/a', '..', 'b/..', '../../c', 'b/../../c']) assert.ok(!staysInside('a', target), target);
});

test('tar and our reader unpack our archives unchanged: long names, modes, links, empty files', async () => {
  const from = join(base, 'from');
  const long = 'n'.repeat(120);
  await mkdir(join(from, 'deep', long), { recursive: true });
  await writeFile(join(from, 'deep', long, long), 'content');
  await writeFile(join(from, 'run'), 'x'.repeat(70_000), { mode: 0o755 });
  await writeFile(join(from, 'empty'), '');
  await symlink(`deep/${long}`, join(from, 'link'));
  const chunks: Buffer[] = [];
  for await (const chunk of packTar(from, '.')) chunks.push(chunk);
  const [ours, theirs] = [join(base, 'ours'), join(base, 'theirs')];
  await Promise.all([mkdir(ours), mkdir(theirs)]);
  assert.equal(spawnSync('tar', ['-x', '-p', '-C', theirs], { input: Buffer.concat(chunks) }).status, 0);
  assert.deepEqual(await unpackTar(packTar(from, '.'), ours, limits), []);
  for (const folder of [ours, theirs]) {
    assert.equal(await readFile(join(folder, 'deep', long, long), 'utf8'), 'content');
    assert.equal((await readFile(join(folder, 'run'))).length, 70_000);
    assert.equal((await stat(join(folder, 'run'))).mode & 0o777, 0o755);
    assert.equal(await readlink(join(folder, 'link')), `deep/${long}`);
    assert.equal((await stat(join(folder, 'empty'))).size, 0);
  }
});

test('our reader unpacks archives of GNU tar with long names and hard links', async () => {
  const from = await mkdtemp(join(base, 'gnu-'));
  const script = `n=$(printf %0120d 1); echo x > $n; ln $n hard; ln -s $n soft; tar -c -f - .`;
  const { stdout } = spawnSync('bash', ['-c', script], { cwd: from });
  const folder = await mkdtemp(join(base, 'out-'));
  await unpackTar(chunksOf(stdout), folder, limits);
  for (const name of ['hard', 'soft', '1'.padStart(120, '0')]) assert.equal(await readFile(join(folder, name), 'utf8'), 'x\n', name);
});

async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
