// Grading on a machine that does not leave it alone: kills from outside, too little of a core, CPU time that a program hides.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { codeTask } from '../../../src/scenario/code/code-task.ts';
import { gradeSecondsOf } from '../../../src/scenario/code/grade.ts';
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

  test('the limits of all tests are part of the time for judging', () => {
    const task = codeTask.parse({ question: 'q', tests: doubles(60), time_limit_s: 6 });
    assert.ok(gradeSecondsOf(task) > 60 * 4 * 6);
  });
});
