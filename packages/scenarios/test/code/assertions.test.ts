// Rows whose tests are assertions: their own solutions pass, wrong programs do not, and programs that attack the tests or their interpreter
// gain nothing, since the tests run in another sandbox and see values only.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { limits } from '@millrace/protocol';
import { codeScenario } from '../../src/code/code.ts';
import { codeTask } from '../../src/code/code-task.ts';
import { GradeBed } from './bed.ts';

const humanEval = {
  task_id: 'HumanEval/0',
  prompt:
    'from typing import List\n\n\ndef helper(x):\n    return x * 2\n\n\ndef above(numbers: List[float], limit: float) -> List[float]:\n    """ The numbers above the limit. """\n',
  entry_point: 'above',
  canonical_solution: '    return [one for one in numbers if one > limit]\n',
  test: "METADATA = {'author': 'a'}\n\n\ndef check(candidate):\n    assert candidate([1.0, 2.0], 1.5) == [2.0]\n    assert candidate([], 0) == []\n    assert len(candidate([1, helper(2)], 0)) == 2, 'two'\n    assert all(abs(a - b) < 1e-6 for a, b in zip(candidate([0.1 + 0.2], 0), [0.3]))\n",
};
const plus = {
  ...humanEval,
  test: 'inputs = [[[1.0, 2.0], 1.5], [[], 0]]\nresults = [[2.0], []]\ndef assertion(out, exp, atol):\n    exact_match = out == exp\n    if atol == 0 and isinstance(exp, float): atol = 1e-6\n    assert exact_match\ndef check(candidate):\n    for i, (inp, exp) in enumerate(zip(inputs, results)):\n        assertion(candidate(*inp), exp, 0)\n',
};
const mbpp = {
  task_id: 11,
  text: 'Write a python function to remove the first and the last occurrence of a character.',
  code: 'def remove_occ(s, ch):\n    i = s.find(ch)\n    s = s[:i] + s[i + 1:] if i >= 0 else s\n    j = s.rfind(ch)\n    return s[:j] + s[j + 1:] if j >= 0 else s',
  test_setup_code: '',
  test_list: [
    'assert remove_occ("hello","l") == "heo"',
    'assert remove_occ("abcda","a") == "bcd"',
    'assert set([remove_occ("PHP","P")]) == {"H"}',
  ],
  challenge_test_list: ['assert remove_occ("hellolloll","l") == "helollol"'],
};
const mbppPlus = {
  task_id: 2,
  prompt: 'Find the shared elements.',
  code: 'def shared(a, b):\n    return tuple(set(a) & set(b))',
  test_imports: ['import math'],
  test_list: ['assert set(shared((3, 4), (5, 4))) == {4}'],
  test: 'inputs = [[(3, 4, 5), (5, 4)]]\nresults = [(4, 5)]\nfor inp, exp in zip(inputs, results):\n    assert set(shared(*inp)) == set(exp) and math.pi > 3\n',
};
const kodCode = {
  style: 'instruct',
  question: 'Write double(items), which doubles the items of a list in place and returns their sum, and halve(x).',
  solution:
    "def double(items):\n    for at in range(len(items)): items[at] *= 2\n    return sum(items)\n\ndef halve(x):\n    if x % 2: raise ValueError('odd')\n    return x // 2\n",
  test: "import pytest\nfrom solution import double, halve\n\ndef test_sum():\n    items = [1, 2]\n    assert double(items) == 6\n    assert items == [2, 4]\n\ndef test_odd():\n    with pytest.raises(ValueError):\n        halve(3)\n\n@pytest.mark.parametrize('x,y', [(2, 1), (4, 2)])\ndef test_halves(x, y):\n    assert halve(x) == pytest.approx(y)\n\ndef test_chain():\n    assert halve(halve(8)) == 2\n    try:\n        halve(1)\n    except ValueError:\n        pass\n    else:\n        assert False\n",
  test_info: [{ function_name: 'double', function_declaration: 'def double(items):' }, { function_name: 'halve' }],
};
const leetCode = {
  prompt: 'from typing import *\n',
  problem_description: 'Two sum.',
  starter_code: 'class Solution:\n    def two(self, nums: List[int], target: int) -> List[int]:\n        ',
  entry_point: 'Solution().two',
  completion:
    'class Solution:\n    def two(self, nums, target):\n        return next([i, j] for j in range(len(nums)) for i in range(j) if nums[i] + nums[j] == target)\n',
  test: 'def check(candidate):\n    assert candidate(nums = [3,3], target = 6) == [0, 1]\n    assert candidate(nums = [3,2,4], target = 6) == [1, 2]\n',
};
const aceCode = {
  question: 'Add one.',
  test_cases: ['assert inc(1) == 2', 'assert inc(-1) == 0'],
  solution: 'def inc(x):\n    return x + 1\n',
};
const verl = {
  prompt: [{ role: 'user', content: 'Add one.' }],
  reward_model: { ground_truth: aceCode.test_cases },
  solution: aceCode.solution,
};
const rows = { humanEval, plus, mbpp, mbppPlus, kodCode, leetCode, aceCode, verl };

const inc = { question: 'Add one.', test_code: { functions: ['inc'], cases: ['assert inc(1) == 2', 'assert inc(41) == 42'] } };

describe('assertions', { timeout: 300_000, concurrency: 2 }, () => {
  let bed: GradeBed;
  before(async () => {
    bed = await GradeBed.open();
  });
  after(async () => await bed[Symbol.asyncDispose]());

  async function judge(row: object, program?: string) {
    await using opened = new AsyncDisposableStack();
    const openSandbox = async () => opened.use(await bed.open());
    const task = codeTask.parse({ ...row, ...(program === undefined ? {} : { solution: program }) });
    const rest = { limits: limits.parse({}), signal: AbortSignal.timeout(120_000), openPrepared: openSandbox };
    return (await codeScenario.trial?.({ task, solution: 'gold', openSandbox, ...rest })) ?? assert.fail();
  }

  for (const [name, row] of Object.entries(rows)) {
    test(`the solution of a row of ${name} passes`, async () => {
      const { isRight, why } = await judge(row);
      assert.equal(isRight, true, why);
    });
  }

  test('a program that returns nothing fails every test', async () => {
    for (const [row, program] of [
      [kodCode, 'def double(items): return None\ndef halve(x): return None'],
      [leetCode, 'class Solution:\n    def two(self, nums, target): return None'],
    ] as const) {
      const { isRight, tests } = await judge({ ...row, credit: 'partial' }, program);
      assert.deepEqual([isRight, Object.values(tests).some(Boolean)], [false, false]);
    }
  });

  const forged: Readonly<Record<string, string>> = {
    'returns an object that equals everything':
      'class Yes:\n    def __eq__(self, other): return True\n    __hash__ = None\ndef inc(x): return Yes()',
    'returns a number whose class lies':
      'class Yes(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\ndef inc(x): return Yes(7)',
    'exits with 0': 'import os\ndef inc(x): os._exit(0)',
    'exits when it is loaded': 'import os\nos._exit(0)\ndef inc(x): return x',
    'raises SystemExit': 'def inc(x): raise SystemExit(0)',
    'raises AssertionError': 'def inc(x): raise AssertionError',
    'replaces builtins and the assertion':
      'import builtins\nbuiltins.AssertionError = type("A", (Exception,), {"__new__": lambda *a: None})\nbuiltins.bool = lambda x: True\nbuiltins.all = lambda x: True\ndef inc(x): return 0',
    'traces and ends at exit':
      'import sys, atexit, os\nsys.settrace(lambda *a: None)\natexit.register(lambda: os._exit(0))\ndef inc(x): return 0',
    'replaces the function that calls it':
      'import sys\nclass Fake(dict):\n    pass\ndef inc(x):\n    sys._getframe(1).f_globals["__millrace_calls"] = None\n    return "passed"',
    'writes a verdict where results go':
      'import os\ndef inc(x):\n    for fd in range(3, 64):\n        try: os.write(fd, b\'{"state": "passed"}\')\n        except OSError: pass\n    os._exit(0)',
    'breaks out of the JSON of the results':
      'import json, os\ndef inc(x):\n    for fd in range(3, 64):\n        try: os.write(fd, b\'"]"],[]],"pass",["inc"],[[[],"[]\')\n        except OSError: pass\n    os._exit(0)',
    'looks for the expected value in frames and the heap':
      'import gc, sys\ndef inc(x):\n    frame = sys._getframe()\n    while frame:\n        for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):\n            if isinstance(value, str) and "assert inc" in value: return x + 1\n        frame = frame.f_back\n    for one in gc.get_objects():\n        if isinstance(one, dict) and any(isinstance(v, str) and "assert inc" in v for v in list(one.values())): return x + 1\n    return None',
    'reads the tests from files and other processes':
      'import glob\ndef inc(x):\n    for path in glob.glob("/workspace/**", recursive=True) + glob.glob("/tmp/**", recursive=True) + glob.glob("/proc/[0-9]*/cmdline"):\n        try: text = open(path, errors="replace").read()\n        except OSError: continue\n        if "assert inc" in text: return x + 1\n    return None',
    'returns a structure too deep': 'def inc(x):\n    a = []\n    for _ in range(100000): a = [a]\n    return a',
    'names an exception that ends the tests':
      'class Stop(Exception): pass\nclass KeyboardInterrupt(Exception): pass\ndef inc(x): raise KeyboardInterrupt("1")',
    'defines no such function': 'def dec(x): return x',
    'does not compile': 'def inc(x: return 1',
  };
  for (const [name, program] of Object.entries(forged)) {
    test(`a program that ${name} does not pass, and is not blamed on the tests`, async () => {
      assert.equal((await judge(inc, program)).isRight, false);
    });
  }

  test('a result that would freeze the comparison is wrong, not an error of the tests', async () => {
    const cases = ['assert sum(range(f(1))) == 1', 'assert len("x" * f(2)) == 1', 'assert f(3) == 3'];
    const slow = { question: 'q', credit: 'partial', time_limit_s: 0.2, test_code: { functions: ['f'], cases } };
    const { isRight, tests } = await judge(slow, 'def f(x): return 3 if x == 3 else 10 ** 11');
    assert.deepEqual([isRight, Object.values(tests)], [false, [false, false, true]]);
  });

  test('test code that fails before any call, or makes none, is at fault itself', async () => {
    const broken = (cases: string[], setup = '') =>
      judge({ question: 'q', test_code: { functions: ['f'], setup, cases } }, 'def f(x): return x');
    const fault = { code: 'evaluate-failed' };
    await assert.rejects(broken(['assert f(1) = 1']), { ...fault, message: /SyntaxError/ });
    await assert.rejects(broken(['assert f(1) == 1'], 'import nosuchmodule'), { ...fault, message: /nosuchmodule/ });
    await assert.rejects(broken(['assert True']), { ...fault, message: /calls none of the functions/ });
    await assert.rejects(broken(['assert f(lambda: 1) == 1']), { ...fault, message: /type function is no plain value/ });
  });
});

test('assertions that need the interpreter of the program are refused at submission, with the line', () => {
  const refused = (row: object) => String(codeTask.safeParse(row).error);
  assert.match(refused({ ...kodCode, test: 'import unittest\nfrom solution import x\n' }), /test, line 1: unittest is not supported/);
  assert.match(
    refused({ ...kodCode, test: 'from solution import x\ndef test_a(capsys):\n    x()\n' }),
    /test, line 2: capsys is not supported/,
  );
  assert.match(refused({ ...kodCode, test: 'from solution import x\ndef test_a(client):\n    x()\n' }), /test_a needs a fixture/);
  assert.match(
    refused({ ...kodCode, test: 'from solution import Stack\ndef test_a():\n    Stack()\n', solution: 'class Stack:\n    pass' }),
    /the class Stack/,
  );
  assert.match(refused({ ...kodCode, test: 'from solution import x\nassert x() == 1\n' }), /no function whose name starts with test_/);
  assert.match(refused({ ...humanEval, test: 'assert above([], 0) == []' }), /no function check/);
  assert.match(
    refused({ ...leetCode, test: 'def check(candidate):\n    assert candidate(head = list_node([1])) == 1\n' }),
    /line 2: list_node/,
  );
  assert.match(
    refused({ ...mbpp, code: 'class Pair:\n    pass\ndef f(x): return x', test_list: ['assert f(Pair(1)) == 1'] }),
    /the class Pair/,
  );
});

test('a task that no program could solve is refused at submission, with the field', () => {
  const at = (task: object) => codeTask.safeParse({ question: 'q', ...task }).error?.issues.map(({ path }) => path.join('.'));
  assert.deepEqual(at({ tests: [] }), ['tests']);
  assert.deepEqual(at({}), ['tests']);
  assert.deepEqual(
    at({
      function_name: 'f',
      tests: [
        { input: '[1]', output: '1' },
        { input: '1', output: '1' },
      ],
    }),
    ['tests.1.input'],
  );
  assert.deepEqual(at({ function_name: 'f', tests: [{ input: '[1', output: '1' }] }), ['tests.0.input']);
  assert.deepEqual(at({ function_name: 'f', tests: [{ input: '[1]', output: 'True' }] }), ['tests.0.output']);
  assert.equal(at({ function_name: 'f', tests: [{ input: '[1]', output: '[NaN, -Infinity]' }] }), undefined);
  assert.equal(at({ function_name: 'f', tests: [{ input: '[]', output: 'None', alternatives: ['null'] }] }), undefined);
  assert.deepEqual(at({ ...inc, tests: [{ input: '', output: '' }] }), ['tests']);
  assert.deepEqual(at({ ...inc, language: 'cpp' }), ['test_code']);
  assert.match(
    String(codeTask.safeParse({ question: 'q', input_output: { inputs: ['1', '2'], outputs: ['1'] } }).error),
    /2 inputs and 1 outputs/,
  );
  assert.match(String(codeTask.safeParse({ description: 'q', private_tests: { input: [], output: [] } }).error), /there are no tests/);
  assert.match(String(codeTask.safeParse({ question: 'q', input_output: { inputs: [], outputs: [] } }).error), /there are no tests/);
});
