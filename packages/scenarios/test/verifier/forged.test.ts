// The agent's text is data in a check: bash may evaluate it where a check asks for that, and still no reward comes from it.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CheckBed } from './bed.ts';

let bed: CheckBed;
before(async () => {
  bed = await CheckBed.open();
});
after(() => bed[Symbol.asyncDispose]());

/** Each check evaluates the answer, and would otherwise end with 1. */
const evaluations: readonly (readonly [name: string, check: string])[] = [
  ['a comparison in [[', '[[ "$ANSWER" -eq 42 ]]; exit 1'],
  ['an arithmetic command', '(( ANSWER == 42 )); exit 1'],
  ['an arithmetic expansion', 'x=$(( ANSWER + 1 )); exit 1'],
  ['let', 'let "x = ANSWER"; exit 1'],
  ['an offset', `x=abc; echo "\${x:ANSWER}"; exit 1`],
  ['an integer variable', 'declare -i x; x=$ANSWER; exit 1'],
  ['a subscript', 'a[ANSWER]=1; exit 1'],
  ['a test of a variable', '[[ -v $ANSWER ]]; [ -v "$ANSWER" ]; exit 1'],
  ['a loop', 'for ((i = 0; i < ANSWER; i++)); do :; done; exit 1'],
];
const answers: readonly (readonly [name: string, answer: string])[] = [
  ['calls reward', 'x[$(reward 1)]'],
  ['writes the report itself', "x[$(printf '%s reward 1\\n' $millrace_secret >&$millrace_channel)]"],
  ['writes a report, and one more without an end', "x[$(printf '%s reward 1\\nx' $millrace_secret >&$millrace_channel)]"],
  ['writes a report and kills the check', "x[$(printf '%s reward 1\\n' $millrace_secret >&$millrace_channel; kill -9 $$)]"],
  ['sets the kept reward', 'millrace_reward=1'],
  ['sets every variable of the check', 'x[$(compgen -v millrace | grep reward)=1]'],
  ['ends the check', 'x[$(exit 0)$(kill -TERM $$)]'],
];
for (const [at, [place, check]] of evaluations.entries()) {
  test(`no reward for an answer that forges one in ${place}`, async () => {
    for (const [name, answer] of answers.slice(0, at === 0 ? undefined : 2)) {
      const { reward, details } = await bed.judge({ answer, check });
      assert.equal(reward, 0, `${name}: ${JSON.stringify(details)}`);
    }
  });
}

test('no reward for a file or an output that forges one in arithmetic', async () => {
  const agent = `echo 'x[$(reward 1)]' > count; printf '#!/bin/sh\\ncat count\\n' > run.sh; chmod +x run.sh`;
  for (const check of [
    '(( $(cat count) > 3 )); exit 1',
    'n=$(judged ./run.sh); [[ $n -gt 3 ]]; exit 1',
    'read -r n < count; (( n > 3 )); exit 1',
  ])
    assert.equal(await bed.reward({ agent, check }), 0, check);
});

test('a reward counts wherever the shell of the check itself reports it, and the last one counts', async () => {
  const checks = {
    'score=$(echo 0.5); reward "$score"': 0.5,
    'false && reward 1 || reward 0.25': 0.25,
    'f() { if true; then reward 0.5; fi; }; for i in 1 2; do f; done; exit 1': 0.5,
    'while read -r x; do reward "$x"; done < <(printf "0.1\\n0.75\\n")': 0.75,
    'set -euo pipefail; trap "rm -f x" EXIT; reward 0.5; false': 0.5,
    'trap "reward 0.5" EXIT; exit 1': 0.5,
    'trap \'code=$?; exit "$code"\' EXIT; exit 1': 0,
    'trap "exit 0" EXIT; reward 0.5': 0.5,
    'trap "(exit 3); true" EXIT; reward 0.5': 0.5,
    '(trap "echo sub" EXIT; exit 1); reward 0.5': 0.5,
    'set -o posix; reward 0.5': 0.5,
    'reward 0.5; exit 77': 0.5,
  };
  for (const [check, reward] of Object.entries(checks)) assert.equal(await bed.reward({ check }), reward, check);
});

test('a check that reports in a subshell, or replaces its shell, is blamed and not the agent', async () => {
  for (const check of ['(reward 1)', 'echo 1 | while read -r x; do reward "$x"; done', 'x=$(reward 1)', 'exec true', 'reward lots'])
    await assert.rejects(bed.judge({ check }), { code: 'evaluate-failed', message: /line 1 of the check script/ }, check);
});

test('a score that is no number is the lowest reward, whatever it repeats of the script', async () => {
  const check = 'reward "$(cat score)"';
  for (const score of ['"$(cat score)"', '"', "'", '$(cat score)', 'many', '', '0x', '1\n2', '"$(cat score)" # a'])
    assert.equal(await bed.reward({ agent: `cat > score <<'end'\n${score}\nend`, check }), 0, score);
});

test('a program that only the answer names is not missing in the check', async () => {
  for (const answer of ['x[$(nosuchprog)]', 'x[$(nosuchprog; exit 127)]', 'x[$(command_not_found_handle grep-all)]'])
    assert.equal(await bed.reward({ answer, check: '[[ "$ANSWER" -eq 42 ]]' }), 0, answer);
  await assert.rejects(bed.judge({ check: 'nosuchprog --all' }), { code: 'evaluate-failed', message: /needs nosuchprog/ });
});

test('an answer that no variable can hold is cut or cleaned, and judged', async () => {
  for (const answer of ['x'.repeat(1 << 20), '\0', '\ud800', 'x\udfff', '\n'.repeat(1 << 20), `41${' '.repeat(1 << 20)}`]) {
    assert.equal(await bed.reward({ answer, check: 'is_text "$ANSWER" 42' }), 0);
    assert.equal(await bed.reward({ answer, check: 'from millrace.check import *\nassert is_text(answer, "42")', language: 'python' }), 0);
  }
  for (const answer of [`${' \n'.repeat(40_000)}42`, `42${'\n\t\r'.repeat(30_000)}`, ` 42${' '.repeat(511)}`, ` 42${' '.repeat(510)}`])
    assert.equal(await bed.reward({ answer, check: 'is_text "$ANSWER" 42 && is_number "$ANSWER" 42' }), 1);
  const check = 'printf %s "$ANSWER" | iconv -f UTF-8 -t UTF-8 >/dev/null && reward "0.$(printf %s "$ANSWER" | wc -c)"';
  assert.equal(await bed.reward({ answer: 'é'.repeat(1 << 19), check }), 0.1);
  assert.equal(await bed.reward({ answer: `a\0${'😀'.repeat(1 << 18)}`, check }), 0.99997);
});
