// Grading on a machine that does not leave it alone: kills from outside, too little of a core, CPU time that a program hides.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { codeTask } from '../../src/code/code-task.ts';
import { gradeSecondsOf } from '../../src/code/grade.ts';
import { TestBench } from '../../src/code/test-bench.ts';
import { doubles, GradeBed } from './bed.ts';

/** The pids of `sleep SECONDS` and of its parent, once there is one. */
async function findSleep(seconds: string): Promise<{ pid: number; parent: number }> {
  for (;;) {
    for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
      try {
        const [program, argument] = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
        if (program !== 'sleep' || argument !== seconds) continue;
        return { pid: Number(name), parent: Number(readFileSync(`/proc/${name}/stat`, 'utf8').split(' ')[3]) };
      } catch {} // it has ended
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Kills every compiler that reads this text, until it is aborted. Returns how many. */
async function killCompilers(text: string, signal: AbortSignal): Promise<number> {
  let kills = 0;
  for (; !signal.aborted; await new Promise((resolve) => setTimeout(resolve, 5))) {
    for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
      try {
        if (!readFileSync(`/proc/${name}/cmdline`, 'utf8').includes('/cc1plus\0')) continue;
        if (!readFileSync(`/proc/${name}/root/workspace/solution.cpp`, 'utf8').includes(text)) continue;
        process.kill(Number(name), 'SIGKILL');
        kills += 1;
      } catch {} // it has ended
    }
  }
  return kills;
}

const sleeps = (seconds: string) => `import os\nos.execvp('sleep', ['sleep', '${seconds}'])`;
const one = { tests: [{ input: '', output: '' }] };

describe('grading that is disturbed', { timeout: 300_000, concurrency: 3 }, () => {
  let bed: GradeBed;
  before(async () => {
    bed = await GradeBed.open();
  });
  after(async () => await bed[Symbol.asyncDispose]());

  test('a program that was killed from outside is run again', async () => {
    const [verdicts] = await Promise.all([
      bed.verdicts(sleeps('1.7003'), one),
      findSleep('1.7003').then(({ pid }) => process.kill(pid, 'SIGKILL')),
    ]);
    assert.deepEqual(verdicts, ['passed']);
  });

  test('a runner that was killed from outside is started again', async () => {
    const [verdicts] = await Promise.all([
      bed.verdicts(sleeps('1.7004'), one),
      findSleep('1.7004').then(({ parent }) => process.kill(parent, 'SIGKILL')),
    ]);
    assert.deepEqual(verdicts, ['passed']);
  });

  test('a program that kills itself, its runner or everything does so every time, and passes nothing', async () => {
    const kill = (who: string) => `import os, signal\nos.kill(${who}, signal.SIGKILL)`;
    assert.deepEqual(await bed.verdicts(kill('os.getpid()'), one), ['runtime_error']);
    assert.deepEqual(await bed.verdicts(kill('os.getppid()'), one), ['broke_sandbox']);
    assert.deepEqual(await bed.verdicts(kill('-1'), one), ['broke_sandbox']);
  });

  test('a program that closes its sandbox for the next tests is judged on them all the same', async () => {
    for (const what of ['os.chmod("/workspace", 0)', 'os.rename("/workspace/solution.py", "/workspace/x")', 'os.chmod("/tmp", 0)']) {
      const program = (answer: string) => `import os\nn = int(input())\ntry: ${what}\nexcept OSError: pass\nprint(${answer})`;
      assert.deepEqual(new Set(await bed.verdicts(program('2 * n'), { tests: doubles(6) })), new Set(['passed']), what);
      const wrong = await bed.verdicts(program('2 * n if n < 3 else 7'), { tests: doubles(6) });
      assert.deepEqual(wrong.slice(0, 4), ['passed', 'passed', 'passed', 'wrong_output'], what);
    }
  });

  const burn = 'while time.process_time() < 2.5: pass';
  const join = 'os.close(write)\nos.read(read, 1)'; // until no child has the other end
  const hidden = {
    'a child that is not waited for': `if os.fork() == 0:\n    ${burn}\n    os._exit(0)\n${join}`,
    'a child that the kernel takes away': `signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nif os.fork() == 0:\n    ${burn}\n    os._exit(0)\n${join}`,
    'many short children': `signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nfor _ in range(50):\n    if os.fork() == 0:\n        while time.process_time() < 0.05: pass\n        os._exit(0)\n    time.sleep(0.05)`,
    'an orphan': `if os.fork() == 0:\n    if os.fork() == 0:\n        os.setsid()\n        ${burn}\n        os._exit(0)\n    os._exit(0)\n${join}`,
    threads: `import threading\nfor _ in range(2): threading.Thread(target=lambda: [sum(range(9999)) for _ in range(9000)]).start()`,
  };
  for (const [where, code] of Object.entries(hidden)) {
    test(`CPU time in ${where} counts`, async () => {
      const program = `import os, signal, time\nn = int(input())\nread, write = os.pipe()\n${code}\nprint(2 * n, flush=True)`;
      const fields = { time_limit_s: 1, credit: 'partial' as const };
      assert.deepEqual(new Set(await bed.verdicts(program, { ...fields, tests: doubles(2) })), new Set(['time_limit']));
    });
  }

  const vfork = (hide: string) => `import ctypes, os, time
n = int(input())
libc = ctypes.CDLL(None)
${hide}
if libc.syscall({'x86_64': 56, 'aarch64': 220}[os.uname().machine], 0x4000 | 17, 0, 0, 0, 0) == 0:
    time.sleep(3000)
    os._exit(0)
print(2 * n)`;
  for (const [who, hide] of [
    ['a program', ''],
    ['a program that cannot be traced', 'libc.prctl(4, 0, 0, 0, 0)'],
    ['a thread of a program', 'import threading\nthreading.Thread(target=time.sleep, args=(3000,)).start()'],
  ] as const)
    test(`the wait of ${who} for the child of its vfork counts as sleep`, async () => {
      assert.deepEqual(await bed.verdicts(vfork(hide), { tests: doubles(1), time_limit_s: 0.5 }), ['time_limit']);
    });

  test('a compiler with a fiftieth of a core has its whole time', async (context) => {
    const program = '#include <iostream>\nint main() { long long n; std::cin >> n; std::cout << 2 * n << "\\n"; }';
    const graded = bed.grade(program, { language: 'cpp', tests: doubles(1) }, { limits: { cpus: 0.02 } });
    const verdicts = await graded.then(
      (grades) => grades.map(({ verdict }) => verdict),
      (error) => error.message,
    );
    if (typeof verdicts === 'string' && verdicts.includes('no g++')) return context.skip(verdicts);
    assert.deepEqual(verdicts, ['passed']);
  });

  test('a compiler that is always killed from outside says nothing about the program', async (context) => {
    const stop = new AbortController();
    const killing = killCompilers('killed 7301', stop.signal);
    const program =
      '// killed 7301\n#include <iostream>\n#include <regex>\nint main() { std::cout << std::regex_match("a", std::regex("a")); }';
    const error = await bed.grade(program, { language: 'cpp', tests: doubles(1) }).then(
      (grades) => assert.fail(`it was judged: ${JSON.stringify(grades)}`),
      (thrown) => thrown,
    );
    stop.abort();
    if (error.message.includes('no g++')) return context.skip(error.message);
    assert.ok((await killing) >= 3);
    assert.equal(error.code, 'evaluate-disturbed');
  });

  test('a machine that kills every runner says nothing about the program', async () => {
    await using opened = new AsyncDisposableStack();
    const open = async () => {
      const sandbox = opened.use(await bed.open());
      const exec: typeof sandbox.exec = (argv, options) => sandbox.exec(['timeout', '-s', 'KILL', '1', ...argv], options);
      return { ...sandbox, readUse: () => sandbox.readUse(), exec, [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose]() };
    };
    const bench = await TestBench.open(open, undefined);
    const test = { input: Buffer.alloc(0), timeMs: 1000, memoryMiB: 256, outputBytes: 100 };
    const run = bench.run({ source: 'import time\ntime.sleep(3)', stopEarly: false }, [test]);
    await assert.rejects(run, { code: 'evaluate-disturbed', message: /kills programs that do nothing/ });
  });

  test('a runner that is always killed before it starts is not blamed on the verifier', async () => {
    await using opened = new AsyncDisposableStack();
    const open = async () => {
      const sandbox = opened.use(await bed.open());
      const exec: typeof sandbox.exec = (_, options) => sandbox.exec(['/bin/sh', '-c', 'kill -9 $$'], options);
      return { ...sandbox, readUse: () => sandbox.readUse(), exec, [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose]() };
    };
    const bench = await TestBench.open(open, undefined);
    const job = { argv: ['true'], runtimeMiB: 64, stopEarly: false };
    const test = { input: Buffer.alloc(0), timeMs: 1000, memoryMiB: 64, outputBytes: 100 };
    await assert.rejects(bench.run(job, [test]), { code: 'evaluate-disturbed' });
  });

  test('the limits of all tests are part of the time for judging', () => {
    const task = codeTask.parse({ question: 'q', tests: doubles(60), time_limit_s: 6 });
    assert.ok(gradeSecondsOf(task) > 60 * 4 * 6);
  });
});
