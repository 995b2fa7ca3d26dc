// A process whose store thread has died exits, instead of looking healthy and doing nothing.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';

for (const role of ['writer', 'reader']) {
  test(`a server whose store ${role} dies logs why and exits`, { timeout: 60_000 }, async () => {
    await using folder = await makeTempFolder('millrace-dead');
    const child = fork(new URL('./dead-thread.ts', import.meta.url), [folder.path, role], { silent: true });
    const [logged, [code]] = await Promise.all([text(child.stdout ?? assert.fail()), once(child, 'exit')]);
    assert.equal(code, 1, logged);
    assert.match(logged, new RegExp(`"event":"store-thread-died".*the ${role} thread exited`));
  });
}
