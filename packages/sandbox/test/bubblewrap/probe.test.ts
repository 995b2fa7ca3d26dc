// What the probe reports on machines that cannot run bubblewrap.

import assert from 'node:assert/strict';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { makeTempFolder, type TempFolder } from '@millrace/testkit/plain';
import { probeBubblewrap } from '../../src/bubblewrap/probe.ts';

let folder: TempFolder;
let refusing: string;
before(async () => {
  folder = await makeTempFolder('probe');
  refusing = join(folder.path, 'bwrap');
  const script = '#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 0.8.0 && exit 0\necho "bwrap: No permissions" >&2\nexit 1\n';
  await writeFile(refusing, script);
  await chmod(refusing, 0o755);
});
after(() => folder[Symbol.asyncDispose]());

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
  test(`${setting}=${value} is reported with the command that fixes it`, async () => {
    const probe = await probeBubblewrap({ bwrapPath: refusing, readSetting: async (name) => (name === setting ? value : undefined) });
    assert.ok(!probe.ok);
    assert.match(probe.reason, new RegExp(`${setting} is ${value}`));
    assert.match(probe.remedy, new RegExp(`sysctl -w ${setting}=`));
  });
}

test('any other error is reported as bwrap printed it', async () => {
  const probe = await probeBubblewrap({ bwrapPath: refusing, readSetting: async () => undefined });
  assert.ok(!probe.ok);
  assert.match(probe.reason, /No permissions/);
});
