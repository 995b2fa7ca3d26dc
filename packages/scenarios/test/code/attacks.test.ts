// Attacks on the grading of programs: none passes a test that it does not solve, none ends without a verdict, and none changes the next test.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { doubles, GradeBed } from './bed.ts';

/** Each does something before, or instead of, printing a wrong answer. */
const attacks: Readonly<Record<string, string>> = {
  'exits 0 early': 'import os\nos._exit(0)',
  'prints what a grader might look for': 'print("PASSED\\nAll tests passed\\nreward 1\\n{\\"passed\\": true}")',
  'replaces the comparison of Python':
    'import builtins, sys\nclass Any(str):\n    def __eq__(self, other): return True\n    __hash__ = str.__hash__\nbuiltins.str = Any\nprint(Any("7"))',
  'replaces the functions of json and os':
    'import json, os, sys\nfor m in (json, os):\n    for n in dir(m):\n        if n != "_exit" and callable(getattr(m, n)) and not n.startswith("__"):\n            try: setattr(m, n, lambda *a, **k: b"")\n            except Exception: pass',
  'kills everything': 'import os, signal\nos.kill(-1, signal.SIGKILL)',
  'kills its parent': 'import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nprint(7)',
  'forks without end': 'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass',
  'leaves a daemon that holds its output': 'import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nprint(7)',
  'writes without end': 'import os\nwhile True: os.write(1, b"x" * 65536)',
  'writes errors without end': 'import os\nwhile True: os.write(2, b"x" * 65536)',
  'writes to every file descriptor':
    'import os\nfor fd in range(3, 1024):\n    try: os.write(fd, b\'\\x00\\x00\\x00\\x10{"end": "exit"}\')\n    except OSError: pass\nprint(7)',
  'opens the channels of the runner':
    'import os\nfor fd in range(20):\n    try:\n        open(f"/proc/{os.getppid()}/fd/{fd}", "wb").write(b"x" * 100)\n        print("opened")\n    except OSError: pass\nprint(7)',
  'reads the memory of the runner': 'import os\ntry:\n    open(f"/proc/{os.getppid()}/mem", "rb")\n    print(0)\nexcept OSError: print(7)',
  'searches its own memory':
    'import gc\nfound = [one for one in gc.get_objects() if isinstance(one, dict) and "output" in one]\nprint(found[0]["output"] if found else 7)',
  'never reads and never ends': 'import time\ntime.sleep(600)',
  'ignores signals':
    'import signal\nfor n in range(1, 64):\n    try: signal.signal(n, signal.SIG_IGN)\n    except Exception: pass\nwhile True: pass',
  'takes all the memory in many processes':
    'import os\nfor _ in range(12):\n    if os.fork() == 0:\n        x = bytearray(64 << 20)\n        while True: pass\nwhile True: pass',
  'fills the disk': 'f = open("/workspace/big", "wb")\nwhile True: f.write(b"x" * (1 << 20))',
  'crashes the compiler': `${'('.repeat(5000)}1${')'.repeat(5000)}`,
};

describe('attacks on the grading of programs', { timeout: 300_000, concurrency: 3 }, () => {
  let bed: GradeBed;
  before(async () => {
    bed = await GradeBed.open();
  });
  after(async () => await bed[Symbol.asyncDispose]());

  for (const [name, program] of Object.entries(attacks)) {
    test(`a program that ${name} passes nothing`, async () => {
      const tests = [{ input: '1\n', output: '2\n' }];
      const verdicts = await bed.verdicts(program, { tests, time_limit_s: 0.5, memory_limit_mib: 256 });
      assert.equal(verdicts.length, 1);
      assert.notEqual(verdicts[0], 'passed');
      assert.notEqual(verdicts[0], 'not_run');
    });
  }

  test('a program that stops its runner passes nothing, and the time for the tests ends it', async () => {
    const program = 'import os, signal\nprint(2, flush=True)\nos.kill(os.getppid(), signal.SIGSTOP)';
    const tests = [{ input: '1', output: '2' }];
    assert.deepEqual(await bed.verdicts(program, { tests, time_limit_s: 0.5 }), ['broke_sandbox']);
  });

  test('a function whose result claims to equal everything is compared by its JSON', async () => {
    const program = 'class Any(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\ndef double(n): return Any(7)';
    assert.deepEqual(await bed.verdicts(program, { function_name: 'double', tests: [{ input: '[1]', output: '2' }] }), ['wrong_output']);
  });

  test('a function that forges a result before it returns is judged by it', async () => {
    const program =
      'import os\ndef double(n):\n    for fd in range(3, 64):\n        try: os.write(fd, b"7")\n        except OSError: pass\n    os._exit(0)';
    assert.deepEqual(await bed.verdicts(program, { function_name: 'double', tests: [{ input: '[1]', output: '2' }] }), ['wrong_output']);
  });

  test('a daemon of one test is dead before the next test', async () => {
    const program = `import os, time
n = int(input())
if n == 0 and os.fork() == 0:
    os.setsid()
    while True: time.sleep(0.01); open('/workspace/alive', 'w').write(str(time.time()))
alive = [name for name in os.listdir('/proc') if name.isdigit() and b'python3\\x00-I' in open(f'/proc/{name}/cmdline', 'rb').read()]
print(2 * n if len(alive) <= 2 + (n == 0) else 7)`;
    assert.deepEqual(await bed.verdicts(program, { tests: doubles(4), credit: 'partial' }), ['passed', 'passed', 'passed', 'passed']);
  });

  test('no file, variable or process of the sandbox holds an expected output', async () => {
    const secret = 'a83d61c07';
    const program = `import os, subprocess
seen = subprocess.run(['grep', '-rIl', 'a83d' + '61c07', '/workspace', '/tmp', '/dev/shm', '/run'], capture_output=True).stdout
for name in os.listdir('/proc'):
    for part in ('cmdline', 'environ'):
        try: seen += b'!' * (b'a83d' + b'61c07' in open(f'/proc/{name}/{part}', 'rb').read())
        except OSError: pass
print('found' if seen else 'nothing')`;
    const tests = [{ input: '', output: secret, alternatives: ['nothing'] }];
    assert.deepEqual(await bed.verdicts(program, { tests, time_limit_s: 20 }), ['passed']);
  });

  test('an attack in one test does not change the verdict of an earlier one', async () => {
    const program = 'import os, signal\nn = int(input())\nprint(2 * n, flush=True)\nif n == 2: os.kill(-1, signal.SIGKILL)';
    const verdicts = await bed.verdicts(program, { tests: doubles(5), credit: 'partial' });
    assert.deepEqual(verdicts.slice(0, 2), ['passed', 'passed']);
    assert.notEqual(verdicts[2], 'passed');
  });
});
