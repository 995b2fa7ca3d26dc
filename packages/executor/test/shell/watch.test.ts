// The watch over a bash that runs a command: a slow delivery is not taken for a broken shell.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { spawn } from '@lydell/node-pty';
import { brokenMs, watchBash } from '../../src/shell/watch.ts';

test('a bash that has not yet received its command is asked at once, and given up only after it had time', async () => {
  const terminal = spawn('/bin/bash', ['--norc', '--noprofile', '--noediting', '-i'], { encoding: null });
  try {
    const asked = Promise.withResolvers<number>();
    const broken = Promise.withResolvers<number>();
    const watch = watchBash(terminal.pid, {
      wasRead: () => false,
      onIdle: () => asked.resolve(performance.now()),
      onBroken: () => broken.resolve(performance.now()),
    });
    const waitedMs = (await broken.promise) - (await asked.promise);
    watch.close();
    assert.ok(waitedMs >= brokenMs, `given up ${Math.round(waitedMs)} ms after it was asked`);
  } finally {
    terminal.kill('SIGKILL');
  }
});
