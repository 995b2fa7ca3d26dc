// What judged programs get of a check, what a check learns from them, and the comparisons that take the agent's text as text.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CheckBed } from './bed.ts';

let bed: CheckBed;
before(async () => {
  bed = await CheckBed.open();
});
after(() => bed[Symbol.asyncDispose]());

test('judged programs get no file and no variable of the check that it does not name', async () => {
  const agent = `printf '#!/bin/bash\\ncat expected.txt /workspace/expected.txt /tmp/expected.txt; echo "$SECRET$ANSWER$TOKEN$1"\\n' > solve.sh; chmod +x solve.sh`;
  const check = `export SECRET=42; echo 42 > expected.txt; echo 42 > /tmp/expected.txt
[ -z "$(TOKEN=42 judged ./solve.sh)" ] || exit 1
[ "$(judged --env SECRET --env TOKEN=7 --file expected.txt ./solve.sh 3)" = $'42\\n42\\n4273' ]`;
  const { reward, details } = await bed.judge({ agent, answer: '42', check });
  assert.equal(reward, 1, JSON.stringify(details));
});

test('judged programs get named files and folders, and the agent’s files as it left them', async () => {
  const agent = 'echo theirs > file; mkdir sub; echo in > sub/x';
  const check = `mkdir -p /opt/none 2>/dev/null; mkdir -p /tmp/tests/deep; echo 1 > /tmp/tests/deep/a; echo changed > file; rm sub/x
[ "$(judged cat file sub/x)" = $'theirs\\nin' ] || exit 1
[ "$(judged --file /tmp/tests cat /tmp/tests/deep/a)" = 1 ] || exit 2
judged --file nothing true 2>/tmp/err; [ $? = 125 ] && grep -q 'no /workspace/nothing' /tmp/err || exit 3
[ "$(judged --file file cat file)" = changed ]`;
  const { reward, details } = await bed.judge({ agent, check });
  assert.equal(reward, 1, JSON.stringify(details));
});

const unittest = `import unittest, solution
class TestAdd(unittest.TestCase):
    def test_add(self): self.assertEqual(solution.add(1, 2), 3)
    def test_zero(self): self.assertEqual(solution.add(0, 0), 0)
if __name__ == '__main__': unittest.main()
`;
const right = 'def add(a, b): return a + b';
const cheats = {
  'ends with 0': `import os; os._exit(0)`,
  'ends with 0 in a test': `import os\ndef add(a, b): os._exit(0)`,
  'exits when it is imported': 'import sys; sys.exit(0)',
  'prints what a runner prints': `print('test_add ... ok\\nOK'); import os\ndef add(a, b): os._exit(0)`,
  'is equal to everything': 'def add(a, b): return 4',
  'replaces the runner': 'import unittest\nunittest.main = lambda: None\ndef add(a, b): return 0',
  'is not there': undefined,
};

test('hidden tests pass for a right module only: the exit code and the output of their process do not count', async () => {
  const check = 'judged_tests --env PYTHONPATH=/workspace --file /tmp/hidden_test.py python3 /tmp/hidden_test.py && reward 1 || reward 0';
  const judge = (text: string | undefined) =>
    bed.judge({
      agent: text === undefined ? 'true' : `cat > solution.py <<'end'\n${text}\nend`,
      check,
      hidden: { '/tmp/hidden_test.py': unittest },
    });
  const { reward, details } = await judge(right);
  assert.equal(reward, 1, JSON.stringify(details));
  for (const [name, text] of Object.entries(cheats)) assert.equal((await judge(text)).reward, 0, name);
});

test('comparisons take the agent’s text as text', async () => {
  const yes = [
    'is_text " hello " hello',
    'is_text "*" "*"',
    'is_number "+042" 42',
    'is_number " 42.0 " 42',
    'is_number 3.1416 3.14159 0.001',
    'is_number -0 0',
    'in_range 1e2 50 150',
    'is_match abc123 "[a-z]+[0-9]+"',
    'echo a > x; echo a > y; same_file x y',
  ];
  const no = [
    'is_text hello "*"',
    'is_text "" x',
    'is_number "x[0]" 42',
    'is_number 6*7 42',
    'is_number 42=42 42',
    'is_number 0x2a 42',
    'is_number nan 42 1',
    'is_number "" 0',
    'is_number 12345678901234567890 12345678901234567891',
    'is_number -42 42',
    'in_range inf 0 9',
    'is_match "abc123 or so" "[a-z]+[0-9]+"',
    'is_match "" "a|b"',
    'is_match "ax" "a|b"',
    'same_file none none',
  ];
  const check = [
    ...yes.map((line) => `${line} || { echo '${line}'; exit 1; }`),
    ...no.map((line) => `! ${line} || { echo 'no: ${line}'; exit 1; }`),
  ].join('\n');
  const { reward, details } = await bed.judge({ check });
  assert.equal(reward, 1, JSON.stringify(details));
});
