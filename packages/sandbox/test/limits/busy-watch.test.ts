// When a sandbox counts as busy, with control groups of both versions made of plain files.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeClock, makeTempFolder } from '@millrace/testkit/plain';
import { openBusyWatch } from '../../src/limits/busy-watch.ts';
import type { CgroupBase } from '../../src/limits/cgroups.ts';

for (const version of [1, 2] as const) {
  test(`in version ${version}, one above half a core is idle until it is below a quarter`, async () => {
    await using temp = await makeTempFolder('busy-watch');
    const folder = temp.path;
    const bases: CgroupBase[] = [
      { controller: 'cpu', version, folder },
      ...(version === 1 ? [{ controller: 'cpuacct', version, folder } as const] : []),
    ];
    const clock = new FakeClock();
    const watch = openBusyWatch(bases, clock);
    const group = join(folder, 'one');
    mkdirSync(group);
    let usedMs = 700_000;
    const use = (ms: number) => {
      usedMs += ms;
      const [file, text] = version === 1 ? ['cpuacct.usage', `${usedMs}000000\n`] : ['cpu.stat', `usage_usec ${usedMs}000\nuser_usec 1\n`];
      writeFileSync(join(group, file), text);
    };
    use(0);
    writeFileSync(join(group, 'cpu.idle'), '0');
    const end = watch.add('one');
    const look = (ms: number, elapsedMs = 1000) => {
      use(ms);
      clock.advance(elapsedMs);
      return readFileSync(join(group, 'cpu.idle'), 'utf8');
    };
    assert.deepEqual([look(400), look(600)], ['0', '1']);
    // Now it is looked at ten times a second, so that it starves for no longer than that.
    assert.deepEqual([look(30, 100), look(80, 100), look(20, 100), look(60, 100)], ['1', '1', '0', '0']);
    assert.deepEqual([look(200), look(400)], ['0', '0']);
    await rm(group, { recursive: true });
    clock.advance(1000); // a sandbox that has ended harms nothing
    end();
  });
}

test('without a count of CPU time nothing is watched', () => {
  const clock = new FakeClock();
  const watch = openBusyWatch([{ controller: 'cpu', version: 1, folder: '/none' }], clock);
  assert.equal(typeof watch.add('one'), 'function');
});
