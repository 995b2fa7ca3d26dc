// The image cache with real Apptainer builds from local files. Of registries, only the errors are tested.

import assert from 'node:assert/strict';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { makeTempFolder, makeTinyImage, type TempFolder, writeDockerArchive } from '@millrace/testkit/plain';
import { openApptainerDriver } from '../../src/apptainer/apptainer.ts';
import { probeApptainer } from '../../src/apptainer/probe.ts';
import { ImageCache } from '../../src/images/image-cache.ts';
import { renderBuildError } from '../../src/images/image-source.ts';

const probe = await probeApptainer();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const timeoutMs = 10_000;
const roomy = 1 << 30;

test('a failed build reports the cause and what to do about it', () => {
  assert.match(
    renderBuildError('docker://x', 'dial tcp: lookup x: no such host'),
    /docker:\/\/x could not be built.*cannot reach the registry/,
  );
  assert.match(renderBuildError('docker://x', 'unauthorized: access denied'), /requires a login/);
  assert.match(renderBuildError('x.def', 'Requesting capability set 0x1ff'), /build it as an ordinary user/);
});

describe('image cache', { skip }, () => {
  let temp: TempFolder;
  let folder: string;
  let archive: string;
  /** A wrapper around Apptainer that records its calls. */
  let counting: string;
  before(async () => {
    temp = await makeTempFolder('mr');
    folder = temp.path;
    await makeTinyImage(join(folder, 'image'));
    archive = join(folder, 'tiny.tar');
    await writeDockerArchive(archive, join(folder, 'image'), ['PATH=/opt/own:/usr/bin', 'FLAVOUR=plum']);
    counting = join(folder, 'counting');
    await writeFile(counting, `#!/bin/sh\necho "$@" >> ${folder}/calls\nexec ${probe.ok ? probe.path : ''} "$@"\n`);
    await chmod(counting, 0o755);
  });
  after(() => temp[Symbol.asyncDispose]());

  async function writeSmall(name: string): Promise<string> {
    const root = join(folder, `root-${name}`);
    await mkdir(root);
    await writeFile(join(root, 'content'), name.repeat(100_000));
    await writeDockerArchive(join(folder, `${name}.tar`), root);
    return `docker-archive:${join(folder, `${name}.tar`)}`;
  }
  const openCache = (name: string, maxBytes = roomy) => new ImageCache({ folder: join(folder, name), maxBytes, apptainerPath: counting });

  test('a Docker archive is converted once for any number of callers, and runs with its own environment', async () => {
    const caches = Array.from({ length: 3 }, () => openCache('once'));
    const leases = await Promise.all(caches.map((cache) => cache.open(`docker-archive:${archive}`)));
    assert.equal(new Set(leases.map(({ path }) => path)).size, 1);
    assert.equal((await readFile(join(folder, 'calls'), 'utf8')).trim().split('\n').length, 1);
    for (const lease of leases) await lease[Symbol.asyncDispose]();
    const driver = await openApptainerDriver({ runDir: join(folder, 'run'), log: silentLog, images: openCache('once') });
    await using sandbox = await driver.open({ image: `docker-archive:${archive}`, env: { FLAVOUR: 'pear' } });
    assert.match((await sandbox.runShell('echo $PATH $FLAVOUR', { timeoutMs })).output, /^\/opt\/own:\/usr\/bin\S* pear\n$/);
    const [image] = await openCache('once').list();
    assert.equal(await openCache('once').remove(image?.key ?? ''), false, 'it is in use');
    await sandbox[Symbol.asyncDispose]();
    assert.equal(await openCache('once').remove(image?.key ?? ''), true);
    assert.deepEqual(await openCache('once').list(), []);
  });

  test('a definition file on a local image is built with progress, and built again when its text changes', async () => {
    const file = join(folder, 'own.def');
    const lines: string[] = [];
    const cache = new ImageCache({ folder: join(folder, 'def'), maxBytes: roomy, onProgress: ({ line }) => lines.push(line) });
    const keys = [];
    for (const flavour of ['plum', 'pear']) {
      await writeFile(file, `Bootstrap: localimage\nFrom: ${join(folder, 'image')}\n%environment\n  export FLAVOUR=${flavour}\n`);
      await using lease = await cache.open(file);
      keys.push(lease.path);
    }
    assert.equal(new Set(keys).size, 2);
    assert.ok(
      lines.some((line) => /build/i.test(line)),
      lines.join('\n'),
    );
  });

  test('the least recently used images are removed when the cache is too large, but never one in use', async () => {
    const cache = openCache('small', 1_000_000);
    const [a, b, c] = [await writeSmall('aaaa'), await writeSmall('bbbb'), await writeSmall('cccc')];
    await using _used = await cache.open(a);
    await (await cache.open(b))[Symbol.asyncDispose]();
    assert.equal((await cache.list()).length, 2);
    await (await cache.open(c))[Symbol.asyncDispose]();
    assert.deepEqual((await cache.list()).map(({ source }) => source).sort(), [a, c]);
  });

  test('an invalid archive and a cancelled build leave nothing behind', async () => {
    const cache = openCache('broken');
    await writeFile(join(folder, 'none.tar'), 'nothing');
    await assert.rejects(cache.open(`docker-archive:${join(folder, 'none.tar')}`), {
      code: 'sandbox-start-failed',
      message: /could not be built/,
    });
    const cancel = new AbortController();
    const onProgress = () => cancel.abort(new Error('no longer wanted'));
    const cancelled = new ImageCache({ folder: join(folder, 'broken'), maxBytes: roomy, onProgress });
    await assert.rejects(cancelled.open(`docker-archive:${archive}`, { signal: cancel.signal }), /no longer wanted/);
    assert.deepEqual(
      (await readdir(join(folder, 'broken'))).filter((name) => !name.endsWith('.lock')),
      [],
    );
  });

  test('a missing file and an unreachable registry give different errors', async () => {
    const cache = openCache('away');
    await assert.rejects(cache.open('/no/such.sif'), { code: 'sandbox-refused', message: /no image \/no\/such\.sif/ });
    await assert.rejects(cache.open('docker://localhost:49999/tiny:latest'), {
      message: /docker:\/\/localhost:49999\/tiny:latest could not be built.*cannot reach/,
    });
  });

  test('a SIF file or a directory is used in place', async () => {
    await using lease = await openCache('local').open(join(folder, 'image'));
    assert.equal(lease.path, join(folder, 'image'));
  });
});
