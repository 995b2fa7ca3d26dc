// The sandbox suite's part on layers: what is prepared once is there for every sandbox that starts on top of it, and whatever one of
// them does is seen by nobody else.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access, mkdtemp, readFile, rm, watch } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import type { Sandbox } from '@millrace/server';
import { type SuiteContext, timeoutMs } from './context.ts';

const preparation = `umask 022; mkdir -p deep/er; echo prepared > deep/er/file; echo gone > doomed; ln -s deep/er/file link; ln deep/er/file twin
echo '#!/bin/sh' > run.sh; chmod 750 run.sh; echo secret > closed; chmod 0 closed; touch -d @1000000000 deep/er/file; mkdir empty
echo temporary > /tmp/leftover; (setsid sleep 1000 &); sleep 1000 &`;

interface Bed {
  readonly folder: string;
  readonly layer: string;
  fork(): Promise<Sandbox>;
}

export function defineLayers(context: SuiteContext): void {
  let bed: Bed;
  before(async () => {
    bed = await openBed(context);
  });
  after(() => rm(bed.folder, { recursive: true, force: true }));
  defineForks(() => bed);
  defineOwnChanges(() => bed);
  defineFreezing(context, () => bed);
}

async function openBed({ driver }: SuiteContext): Promise<Bed> {
  const folder = await mkdtemp(join(tmpdir(), 'layer-'));
  const layer = join(folder, 'layer');
  const prepare = async (sandbox: Sandbox) => {
    assert.equal((await sandbox.runShell(preparation, { timeoutMs })).exitCode, 0);
  };
  await freezeOf(driver())({ env: { GREETING: 'hello' } }, { folder: layer, prepare });
  return { folder, layer, fork: () => driver().open({ env: { GREETING: 'hello' }, layer }) };
}

function freezeOf(driver: ReturnType<SuiteContext['driver']>): NonNullable<typeof driver.freeze> {
  return driver.freeze?.bind(driver) ?? assert.fail('this machine cannot stack files');
}

const say = async (sandbox: Sandbox, command: string) => (await sandbox.runShell(command, { timeoutMs })).output;

function defineForks(bed: () => Bed): void {
  test('what was prepared is there, with its modes, times and links; what ran is not', async () => {
    await using sandbox = await bed().fork();
    assert.equal(await say(sandbox, 'cat link twin; pwd; echo $GREETING'), 'prepared\nprepared\n/workspace\nhello\n');
    assert.equal(
      await say(sandbox, 'stat -c "%a %Y %h" deep/er/file; stat -c %a run.sh closed empty; readlink link'),
      '644 1000000000 2\n750\n0\n755\ndeep/er/file\n',
    );
    assert.equal(await say(sandbox, 'stat -c %u . deep run.sh | sort -u; id -u'), `${(await say(sandbox, 'id -u')).repeat(2)}`);
    assert.equal(await say(sandbox, 'ls /tmp/leftover 2>&1 | grep -c "No such"; ps ax | grep -c "[s]leep 1000"'), '1\n0\n');
  });

  test('a fork has a disk of its own size, and is full like any other', async () => {
    await using sandbox = await bed().fork();
    const sizeMiB = Number(await say(sandbox, 'df -m --output=size . | tail -n 1'));
    assert.ok(sizeMiB > 900 && sizeMiB <= 1024, `${sizeMiB}`);
  });
}

function defineOwnChanges(bed: () => Bed): void {
  test('what one sandbox changes, makes or removes is seen neither by another nor in the layer', async () => {
    await using one = await bed().fork();
    await using other = await bed().fork();
    assert.equal(
      await say(one, 'rm doomed; echo mine >> deep/er/file; rm -rf empty; echo new > new; mv run.sh moved; ls -1'),
      'closed\ndeep\nlink\nmoved\nnew\ntwin\n',
    );
    assert.equal(await say(other, 'ls -1; cat doomed link'), 'closed\ndeep\ndoomed\nempty\nlink\nrun.sh\ntwin\ngone\nprepared\n');
    await using later = await bed().fork();
    assert.equal(await say(later, 'ls -1; cat doomed link'), 'closed\ndeep\ndoomed\nempty\nlink\nrun.sh\ntwin\ngone\nprepared\n');
    assert.equal(await readFile(join(bed().layer, 'home/deep/er/file'), 'utf8'), 'prepared\n');
  });

  test('a folder that is removed and made again is empty', async () => {
    await using sandbox = await bed().fork();
    assert.equal(await say(sandbox, 'rm -rf deep && mkdir deep && ls -A deep; echo "code $?"'), 'code 0\n');
  });

  test('an agent that means harm cannot write to the layer', async () => {
    const list = async () => (await promisify(execFile)('find', [bed().layer, '-printf', '%P %m %T@ %s\n'])).stdout;
    const before = await list();
    await using sandbox = await bed().fork();
    await say(
      sandbox,
      `chmod -R 777 . ; chown 5:5 deep; ls /proc/*/root${bed().layer}; for f in $(find / -path "*${bed().layer}*" 2>/dev/null); do echo harm > $f; done
      unshare -Urm sh -c 'mount --bind / /tmp; umount -l /workspace; echo harm > /workspace/deep/er/file; find ${bed().layer}'; rm -rf /workspace/*`,
    );
    assert.equal(await list(), before);
  });
}

function defineFreezing({ driver }: SuiteContext, bed: () => Bed): void {
  test('a preparation that fails fails the layer, and nothing is kept', async () => {
    const folder = join(bed().folder, 'failed');
    const prepare = async () => {
      throw new Error('not today');
    };
    await assert.rejects(freezeOf(driver())({}, { folder, prepare }), { message: 'not today' });
    await assert.rejects(access(folder));
  });

  test('a preparation that is cancelled ends within a second', async () => {
    const abort = new AbortController();
    let abortedAt = 0;
    const prepare = async (sandbox: Sandbox) => {
      const sleeping = sandbox.runShell('sleep 1000', { timeoutMs, signal: abort.signal });
      abortedAt = performance.now();
      abort.abort(new Error('enough'));
      await sleeping;
    };
    const freezing = freezeOf(driver())({}, { folder: join(bed().folder, 'cancelled'), prepare, signal: abort.signal });
    await assert.rejects(freezing, { message: 'enough' });
    assert.ok(performance.now() - abortedAt < 1000);
  });

  test('a layer that is cancelled while its files are kept is written to by nobody afterwards', async () => {
    const folder = join(bed().folder, 'half');
    const abort = new AbortController();
    const prepare = async (sandbox: Sandbox) => {
      await sandbox.runShell('mkdir many; for i in {1..2000}; do echo $i > many/$i; done', { timeoutMs });
      // The first thing of the copy that can be seen.
      void waitFor(bed().folder, 'half').then(() => abort.abort(new Error('enough')));
    };
    await assert.rejects(freezeOf(driver())({}, { folder, prepare, signal: abort.signal }), { message: 'enough' });
    await rm(folder, { recursive: true });
    await assert.rejects(access(folder));
  });

  test('a preparation that fills its disk is told so', async () => {
    const prepare = async (sandbox: Sandbox) => {
      const { output } = await sandbox.runShell('head -c 64M /dev/zero > large', { timeoutMs });
      assert.match(output, /No space left on device/);
      await sandbox.runShell('rm large', { timeoutMs });
    };
    await freezeOf(driver())({ limits: { diskMiB: 16 } }, { folder: join(bed().folder, 'full'), prepare });
  });
}

async function waitFor(folder: string, name: string): Promise<void> {
  for await (const { filename } of watch(folder)) if (filename === name) return;
}
