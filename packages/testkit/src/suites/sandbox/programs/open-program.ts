// The sandbox suite: programs that keep running, which a worker writes to and reads from.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Sandbox, SandboxProgram } from '@millrace/sandbox';

const timeoutMs = 10_000;

interface ProgramBed {
  sandbox(): Sandbox;
  run(command: string, options: { readonly timeoutMs: number }): Promise<unknown>;
}

export function defineOpenPrograms({ sandbox, run }: ProgramBed): void {
  test('a program that keeps running answers what is written to it, also much at once', async () => {
    await using program = await sandbox().openProgram(['bash', '-c', 'while read -r line; do echo "got $line $ONE"; done'], {
      env: { ONE: '1' },
    });
    await program.write('a\nb\n');
    assert.equal(await readUntil(program, 'got b 1\n'), 'got a 1\ngot b 1\n');
    await using copy = await sandbox().openProgram(['cat']);
    const much = 'x'.repeat(3 << 20);
    const written = copy.write(`${much}\n`);
    assert.equal((await readUntil(copy, '\n')).length, much.length + 1);
    await written;
  });

  test('its end is reported with the exit code and the last errors, after everything that it printed', async () => {
    await using program = await sandbox().openProgram(['bash', '-c', 'echo out; echo broken >&2; exit 3']);
    let text = '';
    for (;;) {
      const { data, end } = await program.read({ timeoutMs });
      text += data.toString('utf8');
      if (!end) continue;
      assert.deepEqual([text, end], ['out\n', { exitCode: 3, stderr: 'broken\n' }]);
      return;
    }
  });

  test('a read ends with its time, with its signal, and closing kills what the program started', async () => {
    const program = await sandbox().openProgram(['bash', '-c', 'sleep 987654 & echo started; wait']);
    await readUntil(program, 'started\n');
    assert.deepEqual(await program.read({ timeoutMs: 1 }), { data: Buffer.alloc(0) });
    const signal = AbortSignal.abort(new Error('enough'));
    await assert.rejects(program.read({ timeoutMs, signal }), /enough/);
    await program[Symbol.asyncDispose]();
    await assert.rejects(program.read({ timeoutMs }), { code: 'not-found' });
    await assert.doesNotReject(run('while pgrep -f "sleep 987654" > /dev/null; do sleep 0.05; done', { timeoutMs }));
    await program[Symbol.asyncDispose]();
  });

  test('a program that does not exist throws not-found, or ends with 127 where a shell sets its limits', async () => {
    try {
      await using program = await sandbox().openProgram(['no-such-program-here']);
      let end: Awaited<ReturnType<typeof program.read>>['end'];
      while (!end) ({ end } = await program.read({ timeoutMs }));
      assert.equal(end.exitCode, 127);
    } catch (error) {
      assert.equal((error as { code?: unknown }).code, 'not-found', String(error));
    }
  });
}

async function readUntil(program: SandboxProgram, ending: string): Promise<string> {
  const parts: Buffer[] = [];
  for (;;) {
    const { data, end } = await program.read({ timeoutMs });
    parts.push(data);
    if (data.toString('utf8').endsWith(ending) || end) return Buffer.concat(parts).toString('utf8');
  }
}
