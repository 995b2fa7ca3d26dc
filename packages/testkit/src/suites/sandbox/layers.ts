// The sandbox suite: layers. Files that are prepared once are available to every sandbox that starts on top of them, and no sandbox sees
// the changes of another.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access, readFile, rm, watch } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import type { Sandbox } from '@millrace/sandbox';
import { makeTempFolder } from '../../temp-folder.ts';
import { type SuiteContext, timeoutMs } from './context.ts';

const preparation = `umask 022; mkdir -p deep/er; echo prepared > deep/er/file; echo gone > doomed; ln -s deep/er/file link; ln deep/er/file twin
echo '#!/bin/sh' > run.sh; chmod 750 run.sh; echo secret > closed; chmod 0 closed; touch -d @1000000000 deep/er/file; mkdir empty
echo temporary > /tmp/leftover; (setsid sleep 1000 &); sleep 1000 &`;

interface LayerFixture extends AsyncDisposable {
  readonly folder: string;
  readonly layer: string;
  fork(): Promise<Sandbox>;
}

export function defineLayers(context: SuiteContext): void {
  let fixture: LayerFixture;
  before(async () => {
    fixture = await openFixture(context);
  });
  after(() => fixture[Symbol.asyncDispose]());
  defineForks(() => fixture);
  defineOwnChanges(() => fixture);
  defineFreezing(context, () => fixture);
}

async function openFixture({ driver }: SuiteContext): Promise<LayerFixture> {
  const temp = await makeTempFolder('layer');
  const folder = temp.path;
  const layer = join(folder, 'layer');
  const prepare = async (sandbox: Sandbox) => {
    assert.equal((await sandbox.runShell(preparation, { timeoutMs })).exitCode, 0);
  };
  await freezeOf(driver())({ env: { GREETING: 'hello' } }, { folder: layer, prepare });
  const fork = () => driver().open({ env: { GREETING: 'hello' }, layer });
  return { folder, layer, fork, [Symbol.asyncDispose]: () => temp[Symbol.asyncDispose]() };
}

function freezeOf(driver: ReturnType<SuiteContext['driver']>): NonNullable<typeof driver.freeze> {
  return driver.freeze?.bind(driver) ?? assert.fail('this machine cannot mount overlays');
}

const run = async (sandbox: Sandbox, command: string) => (await sandbox.runShell(command, { timeoutMs })).output;

function defineForks(fixture: () => LayerFixture): void {
  test('prepared files are there with their modes, times and links; processes are not', async () => {
    await using sandbox = await fixture().fork();
    assert.equal(await run(sandbox, 'cat link twin; pwd; echo $GREETING'), 'prepared\nprepared\n/workspace\nhello\n');
    assert.equal(
      await run(sandbox, 'stat -c "%a %Y %h" deep/er/file; stat -c %a run.sh closed empty; readlink link'),
      '644 1000000000 2\n750\n0\n755\ndeep/er/file\n',
    );
    assert.equal(await run(sandbox, 'stat -c %u . deep run.sh | sort -u; id -u'), `${(await run(sandbox, 'id -u')).repeat(2)}`);
    assert.equal(await run(sandbox, 'ls /tmp/leftover 2>&1 | grep -c "No such"; ps ax | grep -c "[s]leep 1000"'), '1\n0\n');
  });

  test('a fork has a disk of the usual size', async () => {
    await using sandbox = await fixture().fork();
    const sizeMiB = Number(await run(sandbox, 'df -m --output=size . | tail -n 1'));
    assert.ok(sizeMiB > 900 && sizeMiB <= 1024, `${sizeMiB}`);
  });
}

function defineOwnChanges(fixture: () => LayerFixture): void {
  test('changes of one sandbox are visible neither in another nor in the layer', async () => {
    await using one = await fixture().fork();
    await using other = await fixture().fork();
    assert.equal(
      await run(one, 'rm doomed; echo mine >> deep/er/file; rm -rf empty; echo new > new; mv run.sh moved; ls -1'),
      'closed\ndeep\nlink\nmoved\nnew\ntwin\n',
    );
    assert.equal(await run(other, 'ls -1; cat doomed link'), 'closed\ndeep\ndoomed\nempty\nlink\nrun.sh\ntwin\ngone\nprepared\n');
    await using later = await fixture().fork();
    assert.equal(await run(later, 'ls -1; cat doomed link'), 'closed\ndeep\ndoomed\nempty\nlink\nrun.sh\ntwin\ngone\nprepared\n');
    assert.equal(await readFile(join(fixture().layer, 'home/deep/er/file'), 'utf8'), 'prepared\n');
  });

  test('a folder that is removed and created again is empty', async () => {
    await using sandbox = await fixture().fork();
    assert.equal(await run(sandbox, 'rm -rf deep && mkdir deep && ls -A deep; echo "code $?"'), 'code 0\n');
  });

  test('a hostile agent cannot write to the layer', async () => {
    const list = async () => (await promisify(execFile)('find', [fixture().layer, '-printf', '%P %m %T@ %s\n'])).stdout;
    const before = await list();
    await using sandbox = await fixture().fork();
    await run(
      sandbox,
      `chmod -R 777 . ; chown 5:5 deep; ls /proc/*/root${fixture().layer}; for f in $(find / -path "*${fixture().layer}*" 2>/dev/null); do echo harm > $f; done
      unshare -Urm sh -c 'mount --bind / /tmp; umount -l /workspace; echo harm > /workspace/deep/er/file; find ${fixture().layer}'; rm -rf /workspace/*`,
    );
    assert.equal(await list(), before);
  });
}

function defineFreezing({ driver }: SuiteContext, fixture: () => LayerFixture): void {
  test('a failed preparation fails the layer, and nothing is kept', async () => {
    const folder = join(fixture().folder, 'failed');
    const prepare = async () => {
      throw new Error('not today');
    };
    await assert.rejects(freezeOf(driver())({}, { folder, prepare }), { message: 'not today' });
    await assert.rejects(access(folder));
  });

  test('a cancelled preparation ends within a second', async () => {
    const abort = new AbortController();
    let abortedAt = 0;
    const prepare = async (sandbox: Sandbox) => {
      const sleeping = sandbox.runShell('sleep 1000', { timeoutMs, signal: abort.signal });
      abortedAt = performance.now();
      abort.abort(new Error('enough'));
      await sleeping;
    };
    const freezing = freezeOf(driver())({}, { folder: join(fixture().folder, 'cancelled'), prepare, signal: abort.signal });
    await assert.rejects(freezing, { message: 'enough' });
    assert.ok(performance.now() - abortedAt < 1000);
  });

  test('nothing writes to a layer after it is cancelled while its files are copied', async () => {
    const folder = join(fixture().folder, 'half');
    const abort = new AbortController();
    const prepare = async (sandbox: Sandbox) => {
      await sandbox.runShell('mkdir many; for i in {1..2000}; do echo $i > many/$i; done', { timeoutMs });
      // The folder appears when the copy starts.
      void waitFor(fixture().folder, 'half').then(() => abort.abort(new Error('enough')));
    };
    await assert.rejects(freezeOf(driver())({}, { folder, prepare, signal: abort.signal }), { message: 'enough' });
    await rm(folder, { recursive: true });
    await assert.rejects(access(folder));
  });

  test('a preparation that fills its disk sees the error', async () => {
    const prepare = async (sandbox: Sandbox) => {
      const { output } = await sandbox.runShell('head -c 64M /dev/zero > large', { timeoutMs });
      assert.match(output, /No space left on device/);
      await sandbox.runShell('rm large', { timeoutMs });
    };
    await freezeOf(driver())({ limits: { diskMiB: 16 } }, { folder: join(fixture().folder, 'full'), prepare });
  });
}

async function waitFor(folder: string, name: string): Promise<void> {
  for await (const { filename } of watch(folder)) if (filename === name) return;
}
