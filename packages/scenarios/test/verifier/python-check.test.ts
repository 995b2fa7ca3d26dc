// Checks in Python: they report like those in bash, and no program that they start can reach their channel or their memory.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CheckBed, type Judgement } from './bed.ts';

let bed: CheckBed;
before(async () => {
  bed = await CheckBed.open();
});
after(() => bed[Symbol.asyncDispose]());

const judge = (judgement: Judgement) => bed.judge({ ...judgement, language: 'python' });
const imports = 'from millrace.check import *\n';

test('a check in Python reports a number, or passes by its exit code', async () => {
  const checks: readonly (readonly [check: string, reward: number])[] = [
    ['reward(0.25); reward(0.5)', 0.5],
    ['assert answer == "42"', 1],
    ['assert answer == "43"', 0],
    ['import sys; sys.exit(3)', 0],
    ['reward(1) if is_number(answer, 42) else reward(0)', 1],
    ['reward(int(answer) / 84); raise SystemExit(1)', 0.5],
    ['import os; os._exit(0)', 0],
    ['raise ValueError', 0],
    ['import os\nif os.fork() == 0: reward(0)\nelse: os.wait(); reward(0.5)', 0.5],
  ];
  for (const [check, reward] of checks) assert.equal((await judge({ answer: '42', check: imports + check })).reward, reward, check);
  await assert.rejects(judge({ check: 'if True' }), { code: 'evaluate-failed', message: /not valid python: .*line 1/ });
});

test('results of judged programs are data, and these get only what the check names', async () => {
  const agent = `printf '#!/bin/bash\\nread x; echo "$x $SECRET $(cat expected 2>&1)"; echo err >&2; exit 7\\n' > run.sh; chmod +x run.sh`;
  const check = `${imports}import os
os.environ['SECRET'] = '42'
with open('expected', 'w') as file: file.write('42')
one = judged('./run.sh', stdin='in\\n')
assert (one.exit_code, one.stderr) == (7, 'err\\n') and '42' not in one.stdout and one.stdout.startswith('in '), one.stdout
two = judged('./run.sh', env={'SECRET': '1'}, files=['expected'])
assert two.stdout == ' 1 42\\n', two.stdout
assert judged('cat', 'none').exit_code == 1 and file_text('none', 'x') == 'x'`;
  const { reward, details } = await judge({ agent, check });
  assert.equal(reward, 1, JSON.stringify(details));
});

const spy = `for fd in /proc/self/fd/*; do readlink $fd; done | grep socket | grep -vF "$(readlink /proc/self/fd/2)"
cat /proc/$PPID/environ /proc/$PPID/mem 2>/dev/null | head -c 1; ls /proc/$PPID/fd 2>/dev/null
true`;

test('a program that a Python check starts finds neither its channel nor its memory, and the agent’s modules are not imported', async () => {
  const agent = `cat > spy.sh <<'end'\n${spy}\nend
echo 'raise SystemExit(0)' | tee json.py re.py millrace.py > subprocess.py; mkdir millrace; cp json.py millrace/__init__.py; cp json.py millrace/check.py`;
  const check = `import json, re, subprocess
from millrace.check import reward
seen = subprocess.run(['bash', 'spy.sh'], stdout=subprocess.PIPE).stdout
print(seen)
reward(0.5 if seen == b'' else 0)`;
  const { reward, details } = await judge({ agent, check });
  assert.equal(reward, 0.5, JSON.stringify(details));
});

test('comparisons in Python take the agent’s text as text', async () => {
  const check = `${imports}
for one in ['42', ' +42.0 ', '4.2e1']: assert is_number(one, 42), one
for one in ['²', '٤٢', '6*7', 'nan', 'inf', '1_0', '', '0x2a', '42' * 400]: assert not is_number(one, 42), one
assert in_range('3', 1, 3) and not in_range('inf', 0, 9) and is_text(' a\\n', 'a') and not is_text('', 'a')
assert is_match('ab1', '[a-z]+[0-9]') and not is_match('ab1x', '[a-z]+[0-9]')`;
  const { reward, details } = await judge({ check });
  assert.equal(reward, 1, JSON.stringify(details));
});

test('hidden tests of a Python check pass for a right module only', async () => {
  const test = 'import unittest, solution\nclass T(unittest.TestCase):\n  def test_add(self): self.assertEqual(solution.add(1, 2), 3)\n';
  const check = `${imports}env = {'PYTHONPATH': '/workspace:/tmp'}
tests = judged_tests('python3', '-m', 'unittest', '-v', 'test_add', env=env, files=['/tmp/test_add.py'])
print(tests.stdout, tests.stderr, tests.passed)
reward(1 if tests.ok and len(tests.passed) == 1 else 0)`;
  const run = (text: string) => judge({ agent: `cat > solution.py <<'end'\n${text}\nend`, check, hidden: { '/tmp/test_add.py': test } });
  const right = await run('def add(a, b): return a + b');
  assert.equal(right.reward, 1, JSON.stringify(right.details));
  assert.equal((await run('import os; os._exit(0)')).reward, 0);
  assert.equal((await run('import sys; sys.exit(0)')).reward, 0);
});
