// The command line as a whole: help, mistypings, exit codes and broken pipes.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { millrace, openIo } from './fake-io.ts';

test('help names every command in one sentence and ends well', async () => {
  const { code, out } = await millrace(['--help'], openIo());
  assert.equal(code, 0);
  for (const name of ['serve', 'worker', 'submit', 'watch', 'show', 'doctor']) assert.match(out, new RegExp(`^  ${name} .*\\.$`, 'm'));
});

test('help of a command has its options and examples', async () => {
  for (const argv of [
    ['submit', '--help'],
    ['help', 'submit'],
    ['submit', '-h', '--nonsense'],
  ]) {
    const { code, out } = await millrace(argv, openIo());
    assert.equal(code, 0);
    assert.match(out, /--repeat N {2,}Makes each line/);
    assert.match(out, /Examples:\n {2}millrace submit/);
  }
});

test('what cannot be meant answers 2 and the nearest thing that can', async () => {
  const table: [string[], RegExp][] = [
    [['sumbit'], /no command sumbit; did you mean submit\?/],
    [['xyzzy'], /no command xyzzy\n/],
    [['constructor'], /no command constructor\n/],
    [['submit', '--repat', '3'], /no option --repat; did you mean --repeat\?/],
    [['submit', '--trajectoires'], /did you mean --trajectories\?/],
    [['submit', '--repeat', '0'], /--repeat 0 is not a whole number of at least 1/],
    [['submit', '--repeat'], /--repeat/],
    [['submit', '--trajectories=yes'], /--trajectories/],
    [['submit', 'a', 'b'], /one file/],
    [['submit'], /wants a file/],
    [['submit', '/does/not/exist'], /cannot read \/does\/not\/exist/],
    [['submit', '--url', 'nonsense', '-'], /not an http address/],
    [['show'], /one rollout id/],
    [['watch', 'me'], /takes no me/],
    [[], /Usage: millrace <command>/],
  ];
  for (const [argv, wanted] of table) {
    const { code, out, err } = await millrace(argv, openIo());
    assert.deepEqual([code, out], [2, ''], argv.join(' '));
    assert.match(err, wanted);
  }
});

test('a service that is not there is named with its address, and answers 1', async () => {
  const { code, err } = await millrace(['watch', '--once'], openIo({ env: { MILLRACE_URL: 'http://127.0.0.1:9' } }));
  assert.equal(code, 1);
  assert.match(err, /no service at http:\/\/127\.0\.0\.1:9 \(.*ECONNREFUSED.*\nIs it running\?/);
});

test('a reader that leaves early, as head does, is no error', async () => {
  const main = join(import.meta.dirname, '../src/main.ts');
  const child = spawn(process.execPath, [main, '--help'], { stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.destroy();
  let err = '';
  child.stderr.on('data', (chunk) => {
    err += chunk;
  });
  const [code] = await once(child, 'close');
  assert.deepEqual([code, err], [0, '']);
});
