// What the probe says on machines that cannot run bubblewrap.

import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { probeBubblewrap } from '@millrace/server';

let folder: string;
let refusing: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'probe-'));
  refusing = join(folder, 'bwrap');
  const script = '#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 0.8.0 && exit 0\necho "bwrap: No permissions" >&2\nexit 1\n';
  await writeFile(refusing, script);
  await chmod(refusing, 0o755);
});
after(() => rm(folder, { recursive: true }));

test('without bwrap, the remedy installs it', async () => {
  const probe = await probeBubblewrap({ bwrapPath: '/no/such/bwrap' });
  assert.ok(!probe.ok);
  assert.match(probe.remedy, /apt-get install -y bubblewrap/);
});

for (const [setting, value] of [
  ['kernel.unprivileged_userns_clone', '0'],
  ['user.max_user_namespaces', '0'],
  ['kernel.apparmor_restrict_unprivileged_userns', '1'],
]) {
  test(`${setting}=${value} is named, with the line that mends it`, async () => {
    const probe = await probeBubblewrap({ bwrapPath: refusing, readSetting: async (name) => (name === setting ? value : undefined) });
    assert.ok(!probe.ok);
    assert.match(probe.reason, new RegExp(`${setting} is ${value}`));
    assert.match(probe.remedy, new RegExp(`sysctl -w ${setting}=`));
  });
}

test('any other refusal is answered as bwrap gave it', async () => {
  const probe = await probeBubblewrap({ bwrapPath: refusing, readSetting: async () => undefined });
  assert.ok(!probe.ok);
  assert.match(probe.reason, /No permissions/);
});
