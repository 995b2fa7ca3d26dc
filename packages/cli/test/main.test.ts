// The command line as a whole: help, typing errors, exit codes and broken pipes.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { millrace, openIo } from './fake-io.ts';

test('help describes every command in one sentence', async () => {
  const { code, out } = await millrace(['--help'], openIo());
  assert.equal(code, 0);
  for (const name of [
    'serve',
    'worker',
    'backend',
    'policy',
    'submit',
    'batch',
    'watch',
    'ls',
    'show',
    'cancel',
    'image',
    'doctor',
    'version',
  ])
    assert.match(out, new RegExp(`^  ${name} .*\\.$`, 'm'));
});

test('help of a command has its options and examples', async () => {
  for (const argv of [
    ['submit', '--help'],
    ['help', 'submit'],
    ['submit', '-h', '--nonsense'],
  ]) {
    const { code, out } = await millrace(argv, openIo());
    assert.equal(code, 0);
    assert.match(out, /-n, --siblings N {2,}Makes each line/);
    assert.match(out, /Examples:\n {2}millrace submit/);
  }
});

test('a wrong command line exits with 2 and suggests the nearest right one', async () => {
  const table: [string[], RegExp][] = [
    [['sumbit'], /no command sumbit; did you mean submit\?/],
    [['xyzzy'], /no command xyzzy\n/],
    [['constructor'], /no command constructor\n/],
    [['submit', '--sibligns', '3'], /no option --sibligns; did you mean --siblings\?/],
    [['submit', '--trajectoires'], /did you mean --trajectories\?/],
    [['submit', '--siblings', '0'], /--siblings 0 is not a whole number of at least 1/],
    [['submit', '--siblings'], /--siblings/],
    [['submit', '--temperature', 'hot', '-'], /--temperature hot is not a number of at least 0/],
    [['submit', '--limits', 'max_turn=3', '-'], /--limits .*max_turn/],
    [['submit', '--patience', 'long', '-'], /--patience long is not a duration/],
    [['submit', '--trajectories=yes'], /--trajectories/],
    [['submit', 'a', 'b'], /submit takes only \[file\.jsonl\|-\], but got b/],
    [['submit'], /give a file, or JSON lines on standard input/],
    [['submit', '/does/not/exist'], /cannot read \/does\/not\/exist/],
    [['submit', '--url', 'nonsense', '-'], /not an http address/],
    [['show'], /show needs <id>/],
    [['watch', 'me'], /watch takes no arguments, but got me/],
    [['serve', 'extra'], /serve takes no arguments, but got extra/],
    [[], /Usage: millrace <command>/],
  ];
  for (const [argv, wanted] of table) {
    const { code, out, err } = await millrace(argv, openIo());
    assert.deepEqual([code, out], [2, ''], argv.join(' '));
    assert.match(err, wanted);
  }
});

test('a service that does not answer is named with its address', async () => {
  const { code, err } = await millrace(['watch', '--once'], openIo({ env: { MILLRACE_URL: 'http://127.0.0.1:9' } }));
  assert.equal(code, 1);
  assert.match(err, /no service at http:\/\/127\.0\.0\.1:9 \(.*ECONNREFUSED.*\nIs it running\?/);
});

test('a reader that stops early, such as head, is not an error', async () => {
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

test('the version is the one of the package', async () => {
  const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'));
  for (const argv of [['--version'], ['-v'], ['version']]) {
    const { code, out } = await millrace(argv, openIo());
    assert.deepEqual([code, out], [0, `${version}\n`]);
  }
});

test('help of a group lists its actions, and each action has its own help', async () => {
  for (const argv of [
    ['backend', '--help'],
    ['help', 'backend'],
  ]) {
    const { code, out } = await millrace(argv, openIo());
    assert.equal(code, 0);
    assert.match(out, /^Usage: millrace backend <action>/m);
    assert.match(out, /^ {2}add <url> +Adds an LLM server/m);
  }
  for (const argv of [
    ['backend', 'add', '--help'],
    ['help', 'backend', 'add'],
  ])
    assert.match((await millrace(argv, openIo())).out, /^Usage: millrace backend add <url> \[options\]$/m);
});

test('the first steps in the help start a service with a tokenizer and add a backend', async () => {
  const { out } = await millrace(['help'], openIo());
  assert.match(out, /millrace serve --tokenizer [\s\S]*millrace backend add http[\s\S]*millrace submit/);
});
