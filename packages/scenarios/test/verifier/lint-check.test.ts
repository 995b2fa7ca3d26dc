// Dangerous checks are found with their line before an agent finds them, and safe ones are left alone.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadScenarios } from '../../src/load/load.ts';
import { lintCheck } from '../../src/verifier/lint/lint-check.ts';
import type { LintRule } from '../../src/verifier/lint/lint-finding.ts';

const rulesOf = (script: string): string[] => lintCheck(script).map(({ rule }) => rule);

const dangerous: Readonly<Partial<Record<LintRule, readonly string[]>>> = {
  syntax: ['if true; then', 'echo "abc', 'reward 1; fi', 'x=$(cat f', 'case x in', 'echo )'],
  arithmetic: [
    '[[ "$ANSWER" -eq 42 ]]',
    '[[ ANSWER -eq 42 ]]',
    '(( ANSWER == 42 ))',
    '(( $ANSWER == 42 ))',
    'x=$(( ANSWER + 1 ))',
    'let "x = $ANSWER"',
    'x=abc; echo "$' + '{x:$ANSWER}"',
    'a[$ANSWER]=1',
    'echo "$' + '{a[$ANSWER]}"',
    '[[ -v $ANSWER ]]',
    '[ -v "$ANSWER" ]',
    'n=$(cat count); (( n > 3 ))',
    'n=$(judged ./count.sh); m=$n; [[ $m -gt 3 ]]',
    'read -r n < count; (( n > 3 ))',
    'while read -r n; do (( n > 3 )) && reward 1; done < counts',
    'for n in $(cat counts); do (( total += n )); done; reward "$total"',
    '(( $(cat count) > 3 ))',
    'for (( i = 0; i < ANSWER; i++ )); do :; done',
    '[[ $(tail -n 1 log) -ge 1 ]]',
    'declare -i x; x=$ANSWER',
    'declare -i x=$(cat n)',
    'f() { local -ri n="$ANSWER"; }',
    'declare -i n; read -r n < file',
    'mapfile -t lines < out; (( lines[0] > 2 ))',
  ],
  pattern: [
    '[[ 42 == $(cat f) ]]',
    '[[ expected = $ANSWER ]]',
    '[[ expected =~ $ANSWER ]]',
    'case expected in $ANSWER) reward 1 ;; esac',
    'grep -q "$ANSWER" /tests/expected',
    'out=$(judged ./x); [[ 42 == $out ]]',
  ],
  unquoted: ['[ $ANSWER = 42 ]', '[ $(cat f) = 42 ]', 'test $(judged ./x) = 42', 'x=$(cat f); [ $x = 1 ]'],
  'judged-status': [
    'judged python3 hidden_test.py',
    'judged ./solve.sh && reward 1 || reward 0',
    'if judged ./test.sh; then reward 1; fi',
    'cd sub && judged ./test.sh',
    'echo x | judged ./test.sh',
    'judged ./test.sh\nexit $?',
    'judged ./test.sh && exit 0; exit 1',
  ],
  'judged-file': ['[ "$(judged --file expected.txt cat x)" = 1 ]', '[ "$(judged --env SECRET ./x)" = 1 ]'],
  'runs-agent-file': [
    './solve.sh; true',
    'bash solve.sh; true',
    'python3 solve.py | grep -q 42',
    'out=$(timeout 10 python3 solve.py)',
    'source ./lib.sh',
    '. lib.sh',
    'eval "$ANSWER"',
    'make test',
    'npm test',
    'pytest -q',
    'python3 -m pytest tests',
    '/workspace/run',
    'env X=1 ./run',
    'node index.js',
  ],
  'reward-subshell': [
    '(reward 1)',
    'x=$(reward 1)',
    'cat f | while read -r x; do reward 1; done',
    'reward 1 &',
    '{ true; reward 1; } | tee log',
  ],
  'reward-word': ['reward lots', 'reward', 'reward "one half"', 'reward nan'],
  exec: ['exec python3 /tests/run.py', 'exec true'],
};
for (const [rule, scripts] of Object.entries(dangerous)) {
  test(`found: ${rule}`, () => {
    for (const script of scripts) assert.ok(rulesOf(script).includes(rule), `${script}: ${rulesOf(script)}`);
  });
}

test('safe checks are left alone', () => {
  const safe = [
    `[ "$(judged bash greet.sh)" = 'hello world' ]`,
    'out=$(judged python3 answer.py 20); [ "$out" = 6765 ] && reward 1 || reward 0.1',
    '[ "$(wc -l < primes.txt)" -eq 25 ] && head -1 primes.txt | grep -qx 2 && tail -1 primes.txt | grep -qx 97',
    '[ "$(grep -c ERROR log.txt)" -ge 1 ]',
    'n=$(grep -c ERROR log.txt); (( n > 3 ))',
    'n=$(wc -l < out); reward "$(( n * 2 ))"',
    '[[ $ANSWER =~ ^[0-9]+$ ]] && (( ANSWER > 3 ))',
    '[[ $ANSWER =~ ^-?[0-9]{1,9}$ ]] || exit 1; (( ANSWER % 2 == 0 ))',
    'case $ANSWER in *[!0-9]*|"") exit 1 ;; esac; (( ANSWER > 3 ))',
    '[[ "$ANSWER" == "42" ]]',
    '[[ $ANSWER == 42 ]]',
    '[[ $ANSWER == 4* ]]',
    '[ "$ANSWER" = 4 ]',
    '[ "$ANSWER" -eq 4 ]',
    'passed=0; for i in 1 2 3; do [ "$(judged ./double "$i")" = "$((i * 2))" ] && passed=$((passed + 1)); done; reward "$(awk "BEGIN { print $passed / 3 }")"',
    'judged make || exit 1; [ "$(judged ./main)" = 42 ]',
    'if judged make; then [ "$(judged ./main)" = 42 ]; else exit 1; fi',
    'cat > test.sh <<"x"\necho 1\nx\nbash test.sh',
    'python3 /tests/check.py out.json',
    'python3 -c \'import json; json.load(open("out.json"))\'',
    'bash -c "exit 0"',
    'judged_tests --file /tests/test_add.py python3 -m pytest /tests/test_add.py && reward 1 || reward 0',
    'diff -q out.txt /tests/expected.txt',
    'exec 3< out.txt; read -r line <&3; is_text "$line" hello',
    'while read -r x; do reward "$x"; done < <(printf "0.1\\n0.75\\n")',
    'git log --format=%s | head -1 | grep -q fix',
    'sleep 1 & wait',
    'command -v git >/dev/null && [ -z "$(git status --porcelain)" ]',
    'reward .5; reward -1; reward 1e-3',
  ];
  for (const script of safe) assert.deepEqual(rulesOf(script), [], script);
});

test('a comment with a reason accepts a finding in its line or the line below', () => {
  assert.deepEqual(rulesOf('./run.sh # millrace: allow runs-agent-file it is ours'), []);
  assert.deepEqual(rulesOf('# millrace: allow runs-agent-file it is ours\n./run.sh'), []);
  assert.deepEqual(rulesOf('./run.sh # millrace: allow runs-agent-file'), ['runs-agent-file']);
  assert.deepEqual(rulesOf('# millrace: allow exec it is ours\n./run.sh'), ['runs-agent-file']);
});

test('a task with such a check is refused, and the message names the line and the safe form', async () => {
  const shell = (await loadScenarios([])).get('shell') ?? assert.fail();
  const forged = await shell.task.safeParseAsync({ instruction: 'x', check: 'set -e\n[[ $ANSWER -eq 42 ]]' });
  assert.match(JSON.stringify(forged), /line 2: arithmetic on text of the agent.*is_number/);
  assert.match(JSON.stringify(forged), /check/);
  const broken = await shell.task.safeParseAsync({ instruction: 'x', check: 'true\nif true; then' });
  assert.match(JSON.stringify(broken), /line 2: the check script is not valid bash/);
  assert.ok((await shell.task.safeParseAsync({ instruction: 'x', check: { python: 'assert True' } })).success);
});

test('the checks in the examples and pages of this repository have no findings', () => {
  const root = join(import.meta.dirname, '../../../..');
  const quoted = /"check": ("(?:[^"\\]|\\.)*")/g;
  const scripts = globSync('{README.md,docs/*.md,examples/**/*.{jsonl,json,md}}', { cwd: root }).flatMap((path) =>
    [...readFileSync(join(root, path), 'utf8').matchAll(quoted)].map(([, text = '']) => ({ path, script: String(JSON.parse(text)) })),
  );
  assert.ok(scripts.length > 0);
  for (const { path, script } of scripts) assert.deepEqual(lintCheck(script), [], path);
});

test('a long or deeply nested script is examined in a bounded CPU time, or not at all', () => {
  const warmUp = 'if [ a = b ]; then x=$(cat f | head -1); fi\n';
  for (let round = 0; round < 100; round += 1) lintCheck(warmUp.repeat(3));
  const parts = ['x=$(cat f); ', '(', '[[ a && ', '$(', 'a|', 'a;', 'a;"$(', '$((1+', 'x=$x;', '`', '{ ', '"', '<(', '${a:-'];
  for (const part of parts)
    for (const length of [4096, 32 << 10]) {
      const script = part.repeat(length / part.length);
      const times = [1, 2, 3].map(() => {
        const before = process.threadCpuUsage();
        lintCheck(script);
        const { user, system } = process.threadCpuUsage(before);
        return (user + system) / 1000;
      });
      assert.ok(Math.min(...times) < 100, `${part} ${times.join(' ')} ms`);
    }
});
