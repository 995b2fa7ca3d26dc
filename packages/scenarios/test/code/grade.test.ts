// Programs are graded on their tests: by standard input and output, by function calls, by checkers, within limits.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { doubles, GradeBed } from './bed.ts';

const hasBwrap = { timeout: 240_000 };

describe('grading a program', hasBwrap, () => {
  let bed: GradeBed;
  before(async () => {
    bed = await GradeBed.open();
  });
  after(async () => await bed[Symbol.asyncDispose]());

  test('a right program passes every test, and a wrong one stops at its first failure', async () => {
    assert.deepEqual(new Set(await bed.verdicts('print(2 * int(input()))', { tests: doubles(30) })), new Set(['passed']));
    const wrong = await bed.verdicts('n = int(input())\nprint(2 * n if n < 2 else 7)', { tests: doubles(30) });
    assert.deepEqual(wrong.slice(0, 3), ['passed', 'passed', 'wrong_output']);
    assert.equal(wrong.at(-1), 'not_run');
  });

  test('a program that gets no core is not charged for the wait, and one that sleeps is', async () => {
    const limits = { cpus: 0.05 };
    const fields = { time_limit_s: 0.5, tests: [{ input: '', output: '' }] };
    const slow = 'import time\nwhile time.process_time() < 0.3: pass';
    const [grade] = await bed.grade(slow, fields, { limits });
    assert.equal(grade?.verdict, 'passed');
    assert.ok(Number(grade?.cpuMs) > 250);
    const [asleep] = await bed.grade('import time\ntime.sleep(60)', fields);
    assert.equal(asleep?.verdict, 'time_limit');
  });

  test('partial credit runs every test', async () => {
    const verdicts = await bed.verdicts('n = int(input())\nprint(2 * n if n % 2 else 7)', { tests: doubles(10), credit: 'partial' });
    assert.equal(verdicts.filter((one) => one === 'passed').length, 5);
    assert.equal(verdicts.includes('not_run'), false);
  });

  test('programs see what they expect of Python: files, exit codes, threads, argv, open(0), /dev/stdin, recursion', async () => {
    const programs = [
      'import sys\nfor line in sys.stdin: print(2 * int(line))',
      'print(2 * int(open(0).read()))',
      "print(2 * int(open('/dev/stdin').read()))",
      'import os\nprint(2 * int(os.read(0, 100)))',
      'import threading\ndef main(): print(2 * int(input()))\nthreading.Thread(target=main).start()',
      "if __name__ == '__main__':\n    print(2 * int(input()))",
      'import sys\nprint(2 * int(input()))\nsys.exit()',
      'import atexit\nn = int(input())\natexit.register(lambda: print(2 * n))',
      'import subprocess\nprint(subprocess.run(["expr", "2", "*", input()], capture_output=True, text=True).stdout)',
      'import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(2 * int(input()) + f(20000) - 20000)',
      'print(pow(int(input()), 1, 10**9 + 7) * 2)',
    ];
    for (const program of programs) assert.deepEqual(await bed.verdicts(program, { tests: doubles(2).slice(1) }), ['passed'], program);
  });

  test('a function, or a method of Solution, is called with its arguments', async () => {
    const tests = [
      { input: '[[1, 2, 3], 2]', output: '[2, 4, 6]' },
      { input: '[[9007199254740993], 1]', output: '[9007199254740993]' },
    ];
    const method =
      'class Solution:\n    def scale(self, xs: List[int], k: int) -> List[int]:\n        print("noise")\n        return tuple(k * x for x in xs)';
    assert.deepEqual(await bed.verdicts(method, { function_name: 'scale', tests }), ['passed', 'passed']);
    assert.deepEqual(await bed.verdicts('def scale(xs, k):\n    return [k * x for x in xs]', { function_name: 'scale', tests }), [
      'passed',
      'passed',
    ]);
    const off = 'def scale(xs, k):\n    return [k * x - (x > 10**15) for x in xs]';
    assert.deepEqual(await bed.verdicts(off, { function_name: 'scale', tests }), ['passed', 'wrong_output']);
  });

  test('a function that the program does not define is not taken from the usual modules', async () => {
    const task = { function_name: 'add', tests: [{ input: '[1, 2]', output: '3' }] };
    assert.deepEqual(await bed.verdicts('', task), ['runtime_error']);
    assert.deepEqual(await bed.verdicts('def add(x, y):\n    return sub(x, -y)', task), ['passed']);
  });

  test('each limit ends its test with its own verdict', async () => {
    const one = { tests: doubles(1), time_limit_s: 1, memory_limit_mib: 128 };
    assert.deepEqual(await bed.verdicts('while True: pass', one), ['time_limit']);
    assert.deepEqual(await bed.verdicts('x = "x" * (1 << 30)\nprint(0)', one), ['memory_limit']);
    assert.deepEqual(await bed.verdicts('while True: print("0" * 1000)', one), ['output_limit']);
    assert.deepEqual(await bed.verdicts('print(0)\nraise SystemExit(3)', one), ['runtime_error']);
    assert.deepEqual(await bed.verdicts('print(0', one), ['compile_error']);
    assert.deepEqual(await bed.verdicts('import time\ntime.sleep(60)', { ...one, time_limit_s: 0.2 }), ['time_limit']);
  });

  test('a program in C++ is compiled once and run on every test', async (context) => {
    const program = '#include <iostream>\nint main() { long long n; std::cin >> n; std::cout << 2 * n << "\\n"; }';
    const verdicts = await bed.verdicts(program, { language: 'cpp', tests: doubles(6) }).catch((error) => error.message);
    if (typeof verdicts === 'string' && verdicts.includes('no g++')) return context.skip(verdicts);
    assert.deepEqual(new Set(verdicts), new Set(['passed']));
    assert.deepEqual(await bed.verdicts('int main( {', { language: 'cpp', tests: doubles(1) }), ['compile_error']);
  });

  const anyOrder = `import sys
given, answer = (open(path).read().split() for path in sys.argv[2:4])
assert len(given) < 1000, 'hostile'
sys.exit(0 if sorted(given) == sorted(answer) else 1)`;

  test('a checker decides where several outputs are right', async () => {
    const fields = { tests: [{ input: '', output: '1 2 3' }], checker: { source: anyOrder } };
    assert.deepEqual(await bed.verdicts('print(3, 1, 2)', fields), ['passed']);
    assert.deepEqual(await bed.verdicts('print(3, 3, 2)', fields), ['wrong_output']);
    const half = { ...fields, checker: { source: 'print(0.5)', verdict: 'stdout' as const } };
    assert.equal((await bed.grade('print(1)', half))[0]?.score, 0.5);
  });

  test('a checker that an output crashes or delays refuses that output', async () => {
    const fields = { tests: [{ input: '', output: '1 2 3' }], checker: { source: anyOrder } };
    assert.deepEqual(await bed.verdicts('print("1 " * 2000)', fields), ['wrong_output']);
    const slow = `import sys\nn = len(open(sys.argv[2]).read())\nwhile n > 100: pass`;
    const patient = { ...fields, checker: { source: slow, time_limit_s: 0.3 } };
    assert.deepEqual(await bed.verdicts('print("1 " * 2000)', patient), ['wrong_output']);
  });

  test('a checker that fails on the expected output too is blamed on the verifier', async () => {
    const fields = { tests: doubles(1), checker: { source: 'raise ValueError' } };
    await assert.rejects(bed.grade('print(0)', fields), { code: 'evaluate-failed', message: /fails on the expected output too/ });
  });
});
