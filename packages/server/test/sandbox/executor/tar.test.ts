// What comes out of a sandbox as an archive cannot harm this machine: each way out that an archive has is closed.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { staysInside, unpackTar } from '../../../src/sandbox/executor/tar-reader.ts';
import { packTar } from '../../../src/sandbox/executor/tar-writer.ts';

const limits = { maxBytes: 1 << 20, maxEntries: 100 };
let base: string;
before(async () => {
  base = await mkdtemp(join(tmpdir(), 'tar-'));
});
after(() => rm(base, { recursive: true, force: true }));

interface Made {
  readonly name: string;
  readonly type?: string;
  readonly target?: string;
  readonly content?: string;
  readonly size?: number;
}

/** One entry as a hostile program would write it. */
function make({ name, type = '0', target = '', content = '', size = content.length }: Made): Buffer {
  const block = Buffer.alloc(512);
  block.write(name, 0, 100);
  block.write('0000644\0', 100);
  block.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  block.write(`        ${type}`, 148);
  block.write(target, 157, 100);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  const body = Buffer.alloc(Math.ceil(content.length / 512) * 512);
  body.write(content);
  return Buffer.concat([block, body]);
}

async function* archive(...entries: Made[]): AsyncGenerator<Buffer> {
  const bytes = Buffer.concat([...entries.map(make), Buffer.alloc(1024)]);
  for (let at = 0; at < bytes.length; at += 100) yield bytes.subarray(at, at + 100); // cut anywhere
}

async function unpack(...entries: Made[]): Promise<{ folder: string; skipped: string[] }> {
  const folder = await mkdtemp(join(base, 'out-'));
  return { folder, skipped: await unpackTar(archive(...entries), folder, limits) };
}

const refused: [string, Made[]][] = [
  ['an absolute path', [{ name: '/tmp/out' }]],
  ['a step up', [{ name: 'a/../../out' }]],
  ['a step up in a folder', [{ name: '../out', type: '5' }]],
  ['a hard link to a file of the machine', [{ name: 'a', type: '1', target: 'etc/passwd' }]],
  ['a hard link that steps up', [{ name: 'a', type: '1', target: '../../etc/passwd' }]],
  ['a file that is there twice', [{ name: 'a' }, { name: 'a' }]],
  ['a file where a folder is needed', [{ name: 'a' }, { name: 'a/b' }]],
  ['less than it says', [{ name: 'a', size: 100_000 }]],
  ['a long name of megabytes', [{ name: 'x', type: 'L', size: 1 << 24 }]],
  ['a long name that steps up', [{ name: 'x', type: 'L', content: '../out\0' }, { name: 'a' }]],
  ['a pax name that steps up', [{ name: 'x', type: 'x', content: '18 path=/tmp/out\n\n' }, { name: 'a' }]],
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

test('a size bomb ends before a byte of it is written, and so does a swarm of entries', async () => {
  await assert.rejects(unpack({ name: 'a', size: 2 ** 32 }), { code: 'artifact-too-large' });
  await assert.rejects(unpack(...Array.from({ length: 101 }, (_, index) => ({ name: `d${index}`, type: '5' }))), {
    code: 'artifact-too-large',
  });
});

test('devices, pipes and links that lead outside are left out and named', async () => {
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

test('nothing is written through a link, whatever the order', async () => {
  const { folder } = await unpack({ name: 'd', type: '5' }, { name: 'e/l', type: '2', target: '../d' }, { name: 'd/file', content: 'x' });
  assert.equal(await readFile(join(folder, 'e/l/file'), 'utf8'), 'x');
  await assert.rejects(unpack({ name: 'l', type: '2', target: 'd' }, { name: 'l/file', content: 'x' }));
  // A link inside a link would count its steps up from a place where it is not.
  const deep = { name: 'a/b/l', type: '2', target: '../..' };
  await assert.rejects(unpack(deep, { name: 'a/b/l/out', type: '2', target: '../../..' }));
});

test('a link may step up only at its beginning, and not out', () => {
  assert.ok(staysInside('a/b', '../c'));
  assert.ok(staysInside('a', 'b/c'));
  for (const target of ['', '/a', '..', 'b/..', '../../c', 'b/../../c']) assert.ok(!staysInside('a', target), target);
});

test('what is packed here is unpacked by tar and by us as it was: long names, modes, links, empty files', async () => {
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

test('what GNU tar packs with long names and hard links is unpacked', async () => {
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
