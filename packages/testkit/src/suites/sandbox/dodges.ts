// The sandbox suite: agents that try to turn a reward of 0 into no reward. The shell scenario collects and judges all that they leave,
// and only a check that is itself broken gives no reward.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SuiteContext } from './context.ts';
import { type Judgement, judge, script } from './verifier.ts';

interface Dodge extends Judgement {
  readonly name: string;
}

export function defineDodges(context: SuiteContext): void {
  for (const dodge of [...treeDodges, ...checkDodges, ...(context.isRootWritable ? imageDodges : [])]) {
    test(`a reward of 0 for an agent that ${dodge.name}`, async () => {
      const { reward, details } = await judge(context, dodge);
      assert.equal(reward, 0, JSON.stringify(details));
    });
  }
  defineReading(context);
  defineVerifierFaults(context);
}

const deep = `python3 -c 'import os\nfor i in range(60): os.mkdir("d" * 200); os.chdir("d" * 200)\nopen("end", "w").close()'`;

/** Attacks on the collection of the agent's files. */
const treeDodges: readonly Dodge[] = [
  { name: 'takes away the rights to a folder', agent: 'mkdir -p a/b; echo x > a/b/c; chmod 0 a/b a', check: 'false' },
  { name: 'takes away the rights to its whole workspace', agent: 'echo x > file; chmod 0 file; chmod 0 .', check: 'false' },
  {
    name: 'still writes, removes and renames files',
    agent:
      '(while :; do echo line >> log; : > log; mkdir -p x/y; echo > x/y/z; mv x w; rm -rf w; done) >/dev/null 2>&1 & (while :; do head -c 9k /dev/zero >> log2; sleep 0.001; done) >/dev/null 2>&1 & sleep 0.3',
    check: 'false',
  },
  { name: 'makes a path of 12,000 characters', agent: deep, check: 'false' },
  {
    name: 'leaves a false tar in its PATH',
    agent: 'mkdir bin; printf "#!/bin/bash\\nexit 2\\n" > bin/tar; chmod +x bin/tar',
    check: 'false',
    more: { env: { PATH: '/workspace/bin:/usr/bin:/bin' } },
  },
  { name: 'forbids its executor to write files', agent: 'prlimit --pid 1 --fsize=0; true', check: 'false' },
  {
    name: 'leaves pipes, sockets and odd links',
    agent: 'mkfifo answer; ln -s loop loop; ln -s /dev/zero zero; ln -s / root',
    check: 'cat answer',
  },
  {
    name: 'leaves files with odd names',
    agent: `touch -- -rf ' ' $'line\\nbreak' $'\\xff\\xfe' 'ü'; mkdir -p -- --help`,
    check: 'false',
  },
];

/** For drivers with a writable root. */
const imageDodges: readonly Dodge[] = [
  {
    name: 'replaces the programs of its image',
    agent:
      'for name in tar cat bash sh rm mktemp dd; do for path in $(type -ap $name); do printf "#!/bin/false\\n" > /tmp/new; chmod +x /tmp/new; mv -f /tmp/new $path; done; done; true',
    check: 'false',
  },
];

/** Attacks on the check. */
const checkDodges: readonly Dodge[] = [
  { name: 'removes the last program of the check', agent: 'true', check: 'echo; ./solve.sh' },
  { name: 'leaves a last program that is not executable', agent: 'echo x > solve.sh', check: './solve.sh' },
  { name: 'hangs', agent: script('sleep 1000'), check: './solve.sh; true', checkTimeoutMs: 1000 },
  { name: 'hangs when it is judged', agent: script('sleep 1000'), check: 'judged ./solve.sh; true', checkTimeoutMs: 4000 },
  { name: 'kills the check', agent: script('kill -9 $PPID'), check: './solve.sh; true' },
  { name: 'ends the check with a program in its memory', agent: script('kill -9 -1'), check: './solve.sh; true' },
  { name: 'stops the check', agent: script('kill -STOP $PPID'), check: './solve.sh; true', checkTimeoutMs: 1000 },
  { name: 'kills everything when it is judged', agent: script('kill -9 -1; kill -9 $PPID'), check: 'judged ./solve.sh; false' },
  {
    name: 'leaves a pipe that the check reads',
    agent: 'rm -f answer; ln -s /dev/zero answer',
    check: 'cat answer >/dev/null',
    checkTimeoutMs: 1000,
  },
  { name: 'reports something that is not a number', agent: script('echo lots'), check: 'reward "$(judged ./solve.sh)"' },
  { name: 'leaves a score that is not a number', agent: 'echo many > score', check: 'reward "$(cat score)"' },
  { name: 'leaves out a function', agent: 'echo > solve.sh', check: 'source ./solve.sh; solve 3' },
  {
    name: 'starts as many processes as it can',
    agent: script('for i in {1..300}; do sleep 1000 & done 2>/dev/null; :(){ :|:& }; : 2>/dev/null'),
    check: 'judged ./solve.sh >/dev/null 2>&1; exit 1',
    checkTimeoutMs: 8000,
  },
];

function defineReading(context: SuiteContext): void {
  test('a check reads the files of a folder without rights', async () => {
    const agent = 'mkdir a; echo right > a/b; chmod 0 a/b a';
    const { reward, details } = await judge(context, { agent, check: 'chmod -R u+r a; [ "$(cat a/b)" = right ]' });
    assert.equal(reward, 1, JSON.stringify(details));
  });
}

function defineVerifierFaults(context: SuiteContext): void {
  const faults: readonly (readonly [name: string, check: string, message: RegExp])[] = [
    ['is not valid bash', 'if true; then', /not valid bash/],
    ['needs a program that is not there', 'no-such-program --all', /needs no-such-program/],
    ['reports a word as the reward', 'reward lots', /"lots" as the reward/],
  ];
  for (const [name, check, message] of faults) {
    test(`no reward from a check that ${name}`, async () => {
      await assert.rejects(judge(context, { agent: 'true', check }), { code: 'evaluate-failed', message });
    });
  }
}
