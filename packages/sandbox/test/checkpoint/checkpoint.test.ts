// Checkpoints of real sandboxes: another sandbox goes on as if it were the same one, and what an agent leaves in its files or its shell
// reaches nothing but the agent's own sandbox.

import assert from 'node:assert/strict';
import { access } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { makeTempFolder } from '@millrace/testkit/plain';
import { openBubblewrapDriver } from '../../src/bubblewrap/bubblewrap.ts';
import { probeBubblewrap } from '../../src/bubblewrap/probe.ts';
import { NoCheckpoint, restoreCheckpoint, takeCheckpoint } from '../../src/checkpoint/checkpoint.ts';
import type { Sandbox, SandboxDriver } from '../../src/sandbox.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const signal = new AbortController().signal;
const maxBytes = 32 << 20;

describe('a checkpoint of a sandbox', { skip, timeout: 240_000 }, () => {
  const stack = new AsyncDisposableStack();
  let driver: SandboxDriver;
  let folders: readonly string[];
  before(async () => {
    const { path } = stack.use(await makeTempFolder('cp'));
    driver = await openBubblewrapDriver({ runDir: path, log: silentLog });
    folders = driver.writable ?? assert.fail('its folders are known');
  });
  after(async () => await stack[Symbol.asyncDispose]());

  const open = async (): Promise<Sandbox> => stack.use(await driver.open({}));
  const say = async (sandbox: Sandbox, command: string) => (await sandbox.runShell(command, { timeoutMs: 30_000 })).output;
  const take = (sandbox: Sandbox) => takeCheckpoint(sandbox, { folders, maxBytes, signal });
  /** Another sandbox, in which something else was prepared. */
  async function reopen(sandbox: Sandbox): Promise<Sandbox> {
    const checkpoint = await take(sandbox);
    await sandbox[Symbol.asyncDispose]();
    const next = await open();
    await say(
      next,
      'mkdir -p made/before && echo x >made/before/file; chmod 500 made/before; echo old >/tmp/old; export STRAY=1; umask 000',
    );
    await say(next, 'exit'); // a shell that is as new as the one of a task
    await restoreCheckpoint(next, checkpoint, { folders, signal });
    return next;
  }

  test('has all files: kinds, modes, times, links, holes, and names with any byte', async () => {
    const sandbox = await open();
    await say(
      sandbox,
      `mkdir -p a/b 'name with
      newline' && echo one >a/b/one && ln a/b/one a/hard && ln -s ../b/one a/soft && ln -s /nowhere a/out && mkfifo pipe
      printf two >$'\\xff\\xfe' && truncate -s 5G sparse && echo end >>sparse && touch -d '2001-02-03 04:05:06.789' a/b/one
      printf '#!/bin/sh\\necho ran' >tool && chmod 4755 tool && chmod 1777 a && echo t >/tmp/t && echo s >/dev/shm/s
      mkdir shut && echo in >shut/in && chmod 500 shut && echo -n >'-rf' && touch -h -d 2005-05-05 a/soft`,
    );
    const look = `cd /workspace; LC_ALL=C find . /tmp /dev/shm -printf '%p %y %m %n %s %l %T+\\n' | sed 's/ d \\([0-9]*\\) .*/ d \\1/' | sort
      stat -c %h a/hard; stat -c %i a/hard a/b/one | uniq | wc -l; du -k --apparent-size sparse | cut -f1; (($(du -k sparse | cut -f1) < 1000)) && echo holes; ./tool; tail -c 4 sparse`;
    const seen = await say(sandbox, look);
    assert.match(seen, /holes\nran/);
    const next = await reopen(sandbox);
    assert.equal(await say(next, look), seen);
  });

  test('has the state of the shell: directory, variables, functions, aliases, options, traps, limits', async () => {
    const sandbox = await open();
    for (const command of [
      'mkdir -p "deep/o\'er here" && cd deep && cd "o\'er here" && pushd /usr >/dev/null && pushd /tmp >/dev/null && popd >/dev/null && cd - >/dev/null',
      `plain=$'a\\nb"c'\\''d'; export SHOWN='x y'; declare -i number=7; declare -a list=([0]=a [5]='b c'); declare -A map=([k]='v w' ['a b']=c)`,
      'declare -r FIXED=1; declare -n pointer=plain; unset PAGER; empty=; declare unset_one',
      'greet() { local who=$1; echo "hi $who"; }; shopt -s extglob; pick() { case $1 in @(a|b)) echo yes;; *) echo no;; esac; }; export -f greet',
      "alias ll='ls -l'; alias greet2='greet twice'; umask 027; ulimit -S -n 300; set -o pipefail; shopt -s nullglob; set -- one 'two three'",
      `trap 'echo caught' USR1; OPTIND=3; PS4='# '`,
    ])
      await say(sandbox, command);
    const look = `pwd; dirs -l -p; declare -p plain SHOWN number list map FIXED pointer empty unset_one OLDPWD; echo "\${PAGER-none}" "\${STRAY-none}"; greet; pick a; pick c
      bash -c greet; alias; umask; ulimit -S -n; set -o | grep pipefail; shopt nullglob extglob expand_aliases; echo $# "$2"; trap -p; kill -USR1 $$; echo $OPTIND "$PS4"; cd /; declare -F; env | sort | grep -v '^_='`;
    const seen = await say(sandbox, look);
    assert.match(seen, /caught/);
    await say(sandbox, "cd '/workspace/deep/o'\\''er here'");
    const next = await reopen(sandbox);
    await say(next, 'cd "$OLDPWD"; cd "/workspace/deep/o\'er here"; cd "$OLDPWD"');
    const same = (text: string) => text.split('\n').filter((line) => !/OLDPWD|PWD=|^\/|SHLVL/.test(line));
    assert.deepEqual(same(await say(next, look)), same(seen));
  });

  test('is in the directory of the shell, also if its name for it is gone or wrong', async () => {
    const sandbox = await open();
    await say(sandbox, 'mkdir real && ln -s real link && cd link && PWD=/wrong');
    const next = await reopen(sandbox);
    assert.equal(await say(next, 'pwd -P'), '/workspace/real\n');
  });

  test('is not taken while a program runs or a file is open, and says so', async () => {
    const sandbox = await open();
    await say(sandbox, 'sleep 1000 & disown');
    await assert.rejects(
      take(sandbox),
      (error) => error instanceof NoCheckpoint && !error.isLasting && /^programs .*process \d+;$/.test(error.message),
    );
    await say(sandbox, 'kill -9 $!; wait $! 2>/dev/null; exec 7</etc/passwd');
    await assert.rejects(take(sandbox), /file 7;/);
    await say(sandbox, 'exec 7<&-');
    await sandbox.runPython('x = 1', { timeoutMs: 30_000 });
    await assert.rejects(take(sandbox), NoCheckpoint, 'the state of Python is not saved');
  });

  test('is not taken of more than its limit, nor of files that cannot be read', async () => {
    const sandbox = await open();
    await say(sandbox, 'head -c 40M /dev/urandom >big');
    await assert.rejects(take(sandbox), /more than 33554432 bytes/);
    await say(sandbox, 'rm big; echo x >closed; chmod 000 closed');
    await assert.rejects(take(sandbox), /closed: Cannot open: Permission denied/);
    await say(sandbox, 'rm -f closed; for d in {1..40}; do mkdir d; cd d; done; cd /workspace');
    await take(sandbox);
  });

  test('costs the agent at most one wait for a shell that does not write its state, and tells that it is useless to try again', async () => {
    const sandbox = await open();
    await say(sandbox, 'rm -f /run/millrace/own/checkpoint; mkfifo /run/millrace/own/checkpoint');
    await assert.rejects(take(sandbox), (error) => error instanceof NoCheckpoint && error.isLasting);
  });

  test('runs what an agent left in its shell in the new sandbox only, as it would have run in the old one', async () => {
    const sandbox = await open();
    const { path } = stack.use(await makeTempFolder('out'));
    await say(
      sandbox,
      `touch ${path}/reached; PROMPT_COMMAND='touch ${path}/prompt'; trap 'touch ${path}/debug /tmp/debug' DEBUG; declare() { touch ${path}/declare; builtin declare "$@"; }`,
    );
    const next = await reopen(sandbox);
    assert.match(await say(next, 'ls /tmp'), /debug/);
    for (const name of ['reached', 'prompt', 'debug', 'declare']) await assert.rejects(access(`${path}/${name}`), { code: 'ENOENT' });
  });
});
