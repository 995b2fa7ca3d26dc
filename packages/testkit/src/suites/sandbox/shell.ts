// The sandbox suite: the persistent shell. For each thing that an agent does, what the model sees.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ShellResult } from '@millrace/sandbox';
import type { SuiteContext } from './context.ts';

export function defineState(context: SuiteContext): void {
  const { run } = context;

  test('directory, variables and functions stay from command to command', async () => {
    await run('mkdir -p deep/er; cd deep/er; export COLOUR=blue; shout() { echo "$1!"; }');
    const result = await run('pwd; echo $COLOUR; shout hey; cd ~');
    assert.equal(result.output, '/workspace/deep/er\nblue\nhey!\n');
    assert.equal(result.cwd, '/workspace');
  });

  test('the environment of the spec is set', async () => {
    assert.equal((await run('echo $GREETING')).output, 'hello\n');
  });

  test('an exit code is returned as a value', async () => {
    assert.deepEqual(pick(await run('(exit 7)')), { end: 'exited', exitCode: 7, output: '' });
  });

  test('exec >/dev/null applies only until the end of its command', async () => {
    assert.deepEqual(pick(await run('exec >/dev/null 2>&1; echo unseen')), { end: 'exited', exitCode: 0, output: '' });
    await assertWorks(context);
  });

  test('a terminal left in raw mode, or with echo on, changes nothing', async () => {
    await run('stty raw </dev/tty');
    await assertWorks(context);
    await run('stty sane echo </dev/tty');
    await assertWorks(context);
    await run('stty -echo -onlcr </dev/tty');
  });

  test('prompts, PROMPT_COMMAND and set -x show none of our own lines', async () => {
    await run('PS1="(venv) $ "; PROMPT_COMMAND="echo prompt"; set -x');
    const result = await run('echo x');
    assert.equal(result.output, '++ echo x\nx\n');
    await run('set +x; unset PROMPT_COMMAND PS1');
    await assertWorks(context);
  });

  test('a command of 1 MB runs', async () => {
    const result = await run(`x='${'y'.repeat(1 << 20)}'; echo "\${#x}"`);
    assert.equal(result.output, '1048576\n');
  });

  test('500 small commands each get their own output', async () => {
    for (let index = 0; index < 500; index += 1) assert.equal((await run(`echo ${index}`)).output, `${index}\n`);
  });
}

export function defineOutput({ run }: SuiteContext): void {
  test('of 100 MB of output, the head, the tail and the number of missing bytes are shown', async () => {
    const result = await run('echo first; head -c 100000000 /dev/zero | tr "\\0" x; echo; echo last', { capBytes: 1000 });
    assert.equal(result.totalBytes, 100_000_012);
    assert.equal(result.cutBytes, 100_000_012 - 1000);
    assert.match(result.output, /^first\nx+\n\[\.\.\. 99999012 bytes left out \.\.\.\]\nx+\nlast\n$/);
  });

  test('binary output becomes valid text', async () => {
    const result = await run("printf 'a\\0b\\001\\377\\376c\\n'");
    assert.equal(result.output, 'ab\ufffd\ufffdc\n');
    const noise = await run('head -c 300000 /dev/urandom');
    assert.equal(noise.end, 'exited');
    assert.ok(noise.output.isWellFormed());
  });

  test('a character written in two pieces arrives whole', async () => {
    assert.equal(
      (await run("printf '\\xe2\\x82'; printf '\\xac'; printf '\\xf0\\x9f'; sleep 0.01; printf '\\x98\\x80\\n'")).output,
      '€😀\n',
    );
  });

  test('output is never cut inside a character', async () => {
    const result = await run('for i in {1..400}; do printf €; done', { capBytes: 101 });
    assert.equal(result.output.replaceAll('€', ''), '\n[... 1101 bytes left out ...]\n');
  });

  test('colours are removed, and a progress bar leaves its last state', async () => {
    assert.equal((await run("printf '\\e[1;31mred\\e[0m \\e]0;title\\aok\\n'")).output, 'red ok\n');
    assert.equal((await run("printf ' 10%%\\r 50%%\\r\\e[Kdone\\n'")).output, 'done\n');
  });

  test('later output of a background process appears with the next command', async () => {
    await run('mkfifo gate; (read -r < gate; echo late; echo > gate) &');
    const result = await run('echo > gate; read -r < gate; echo now; rm gate');
    assert.match(result.output, /^late\nnow\n/);
  });
}

export function defineEnds(context: SuiteContext): void {
  const { run } = context;
  const fatal: [command: string, exitCode: number][] = [
    ['exit 3', 3],
    ['exec true', 0],
    ['set -e; false', 1],
    ['kill -9 $$', 137],
    ['exec bash', 0],
  ];
  for (const [command, exitCode] of fatal) {
    test(`${command}: the shell ends with ${exitCode}, and a new one starts in the same directory`, async () => {
      await run('mkdir -p here; cd here');
      assert.deepEqual(pick(await run(`echo seen; ${command}`)), { end: 'shell-exited', exitCode, output: 'seen\n' });
      assert.equal((await run('pwd; cd ~')).output, '/workspace/here\n');
    });
  }

  test('after a shell ends in a directory that it has removed, the new one starts in the home directory', async () => {
    await run('mkdir gone; cd gone; rmdir ../gone; exit');
    assert.equal((await run('pwd')).output, '/workspace\n');
  });

  test('kill -9 -1 does not end the sandbox', async () => {
    const result = await run('sleep 1000 & kill -9 -1; echo after');
    assert.ok(result.end === 'exited' || result.end === 'shell-exited', result.end);
    await assertWorks(context);
  });

  test('no signal that an agent would send ends the executor', async () => {
    await run('for i in {1..50}; do for signal in HUP INT QUIT TERM USR1 USR2 ALRM KILL STOP TSTP; do kill -$signal 1; done; done');
    await assertWorks(context);
  });

  test('a command that damages the file for commands does not stop the next one', async () => {
    for (const damage of ['rm f; mkfifo f', 'rm f; mkdir -p f/x', 'rm -r f; ln -s /tmp f', 'rm f; chmod 0 .']) {
      await run(`cd /run/millrace/own && (${damage.replaceAll(' f', ' command')}); cd ~`);
      await assertWorks(context);
    }
  });

  test('an unclosed quote is a syntax error', async () => {
    const result = await run('echo "open');
    assert.equal(result.exitCode, 2);
    assert.match(result.output, /unexpected EOF while looking for matching `"'/);
    await assertWorks(context);
  });

  test('an unclosed heredoc ends with the command', async () => {
    const result = await run('cat <<EOF\ninside');
    assert.match(result.output, /here-document .* delimited by end-of-file[^\n]*\ninside\n$/);
    await assertWorks(context);
  });

  test('a background process does not delay its command, and keeps running', async () => {
    const result = await run('sleep 1000 & echo started');
    assert.deepEqual(pick(result), { end: 'exited', exitCode: 0, output: 'started\n' });
    // Whether bash also reports the job as terminated depends on when it collects it.
    assert.match((await run('kill %1 && echo was-there; wait')).output, /^was-there$/m);
  });

  test('a program that reads its input gets end of file at once', async () => {
    assert.deepEqual(pick(await run('cat; read -r line; echo "got:$line"')), { end: 'exited', exitCode: 0, output: 'got:\n' });
  });
}

export function defineStopping(context: SuiteContext): void {
  const { run } = context;

  test('a command that runs out of time is interrupted, and its output so far is shown', async () => {
    await run('export KEPT=yes');
    const result = await run('echo before; sleep 1000; echo never', { timeoutMs: 100 });
    assert.deepEqual(pick(result), { end: 'timeout', exitCode: 130, output: 'before\n' });
    assert.equal((await run('echo $KEPT')).output, 'yes\n');
  });

  for (const command of ['while :; do :; done', 'x=$(sleep 1000)', 'read -r x </dev/tty', 'cat </dev/tty', 'sleep 1000 | cat']) {
    test(`${command}: interrupted, and the shell keeps running`, async () => {
      await run('KEPT=yes');
      assert.equal((await run(command, { timeoutMs: 50 })).end, 'timeout');
      assert.equal((await run('echo $KEPT')).output, 'yes\n');
    });
  }

  test('a program that ignores Ctrl-C is killed, and the shell keeps running', async () => {
    await run('KEPT=yes');
    const result = await run('bash -c \'trap "" INT; while :; do sleep 1000; done\'', { timeoutMs: 50 });
    assert.deepEqual([result.end, result.exitCode], ['timeout', 137]);
    assert.equal((await run('echo $KEPT')).output, 'yes\n');
  });

  test('a shell that ignores Ctrl-C itself is killed, and a new one is started', async () => {
    const result = await run('KEPT=yes; trap "" INT; while :; do :; done', { timeoutMs: 50 });
    assert.equal(result.end, 'shell-killed');
    assert.equal((await run('echo "[$KEPT]"')).output, '[]\n');
  });

  test('a cancelled command throws the reason at once, and the next one has a working shell', async () => {
    const cancel = new AbortController();
    const began = performance.now();
    const running = run('sleep 1000', { signal: cancel.signal });
    setImmediate(() => cancel.abort(new Error('no longer wanted')));
    await assert.rejects(running, /no longer wanted/);
    await assertWorks(context);
    assert.ok(performance.now() - began < 1000);
  });

  test('a command that is cancelled just before bash runs it does not affect the next one', async () => {
    for (let round = 0; round < 25; round += 1) {
      const cancel = new AbortController();
      const running = run('sleep 1000', { signal: cancel.signal });
      setTimeout(() => cancel.abort(new Error('no longer wanted')), round % 5);
      await assert.rejects(running, /no longer wanted/);
      await assertWorks(context);
    }
  });
}

function pick({ end, exitCode, output }: ShellResult): Pick<ShellResult, 'end' | 'output'> & { exitCode: number | undefined } {
  return { end, exitCode, output };
}

async function assertWorks({ run }: SuiteContext): Promise<void> {
  assert.deepEqual(pick(await run('echo works')), { end: 'exited', exitCode: 0, output: 'works\n' });
}
