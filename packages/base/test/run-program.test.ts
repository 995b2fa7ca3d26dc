// Programs that are run to their end: what they return, how they fail, and that a signal to this process's group does not reach them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readProcess } from '../src/processes.ts';
import { ProgramFailed, runProgram } from '../src/run-program.ts';

test('a program returns its standard output, and its environment is the one given', async () => {
  assert.equal(await runProgram(['/bin/sh', '-c', 'echo $COLOUR'], { env: { COLOUR: 'blue' } }), 'blue\n');
});

test('a program is in its own session, so that Ctrl-C in our terminal does not reach it', async () => {
  const [pid, group, session] = (await runProgram(['bash', '-c', 'cut -d " " -f 1,5,6 /proc/$$/stat'])).trim().split(' ');
  assert.deepEqual([group, session], [pid, pid]);
  assert.notEqual(Number(session), readProcess(process.pid)?.session);
});

test('a program that fails throws what it wrote to standard error, and so does one that cannot be started', async () => {
  await assert.rejects(runProgram(['sh', '-c', 'echo broken >&2; exit 3']), (error) => {
    assert.ok(error instanceof ProgramFailed);
    assert.deepEqual([error.message, error.stderr], ['sh ended with exit code 3: broken', 'broken']);
    return true;
  });
  await assert.rejects(runProgram(['/no/such/program']), { message: /\/no\/such\/program ENOENT/ });
});

test('a program that takes too long, or is cancelled, is killed together with what it started', async () => {
  const startMs = performance.now();
  await assert.rejects(runProgram(['sh', '-c', 'sleep 1000 | sleep 1000'], { timeoutMs: 50 }), /sh did not end within 50 ms/);
  const cancel = new AbortController();
  const onText = () => cancel.abort(new Error('no longer wanted'));
  const running = runProgram(['sh', '-c', 'echo begun; sleep 1000 | sleep 1000'], { signal: cancel.signal, onText });
  await assert.rejects(running, /no longer wanted/);
  await assert.rejects(runProgram(['true'], { signal: cancel.signal }), /no longer wanted/);
  assert.ok(performance.now() - startMs < 10_000);
});
