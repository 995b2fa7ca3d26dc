// Right and wrong solutions for every scenario. The reward of each is known, whatever the machine does.

import { join } from 'node:path';
import type { SubmissionInput } from '@millrace/protocol';
import { renderCall } from '@millrace/testkit';
import { testPatch } from '../graders/swe-evaluate.ts';
import { writeHarborTask } from './harbor-tasks.ts';

export interface VerdictCase {
  readonly scenario: string;
  readonly isRight: boolean;
  readonly task: SubmissionInput['task'];
  /** What the policy says, turn by turn. */
  readonly turns: readonly string[];
}

/** One task as its number names it, with what right and wrong agents say. */
type MakeCase = (
  name: string,
  n: number,
  /** For tasks that are files. */
  folder: string,
) => { readonly task: VerdictCase['task']; readonly right: readonly string[]; readonly wrong: readonly string[] };

const finish = (answer: string) => renderCall('finish', { answer });
const bash = (command: string) => renderCall('bash', { command });
const python = (source: string) => [`\`\`\`python\n${source}\n\`\`\``];
const cpp = (source: string) => [`\`\`\`cpp\n${source}\n\`\`\``];
const inputs = [3, 10, 40, 200];
const squares = (n: number) => (n * (n - 1) * (2 * n - 1)) / 6;
const codeTests = (add: number) => inputs.map((n) => ({ input: `${n}\n`, output: `${squares(n) + add}\n` }));

/** Computes for a tenth of a second in each test. */
const work = 'import time\nwhile time.process_time() < 0.1: pass\n';

/** Each way to be wrong comes up in turn. */
const wrongPrograms = (n: number) =>
  [
    `${work}n = int(input())\nprint(sum(i * i for i in range(n)) + ${n + 1})`,
    `n = int(input())\nwhile n > 100: pass\nprint(sum(i * i for i in range(n)) + ${n})`,
    `import time\nn = int(input())\nif n > 100: time.sleep(600)\nprint(sum(i * i for i in range(n)) + ${n})`,
    `n = int(input())\nassert n < 100\nprint(sum(i * i for i in range(n)) + ${n})`,
  ][n % 4] ?? '';

const kinds: Readonly<Record<string, { readonly scenario: string; readonly share: number; readonly make: MakeCase }>> = {
  math: {
    scenario: 'math',
    share: 40,
    make: (name, n) => ({
      task: { question: `${name} What is ${n} / 7?`, answer: `\\frac{${n}}{7}` },
      right: [`The answer is \\boxed{\\dfrac{${2 * n}}{14}}.`],
      wrong: [`The answer is \\boxed{\\frac{${n + 1}}{7}}.`],
    }),
  },
  stem: {
    scenario: 'stem',
    share: 30,
    make: (name, n) => ({
      task: { kind: 'numeric', question: `${name} How far in ${n + 1} s at 3 m/s?`, answer: `${3 * (n + 1)} m`, relative_tolerance: 0.001 },
      right: [`It is \\boxed{${(3 * (n + 1)) / 1000} km}.`],
      wrong: [`It is \\boxed{${3 * (n + 1) + 1} m}.`],
    }),
  },
  code: {
    scenario: 'code',
    share: 60,
    make: (name, n) => ({
      task: { question: `${name} Add the squares below n, and ${n}.`, tests: codeTests(n), time_limit_s: 1 },
      right: python(`${work}n = int(input())\nprint(sum(i * i for i in range(n)) + ${n})`),
      wrong: python(wrongPrograms(n)),
    }),
  },
  'code in C++': {
    scenario: 'code',
    share: 20,
    make: (name, n) => ({
      task: { question: `${name} Add the squares below n, and ${n}.`, language: 'cpp', tests: codeTests(n), time_limit_s: 1 },
      right: cpp(`#include <iostream>\nint main() { long n, s = ${n}; std::cin >> n; while (n-- > 0) s += n * n; std::cout << s; }`),
      wrong: cpp(`#include <iostream>\nint main() { long n, s = ${n}; std::cin >> n; while (n-- > 1) s += n; std::cout << s; }`),
    }),
  },
  'code with a checker': {
    scenario: 'code',
    share: 20,
    make: (name, n) => ({
      task: {
        question: `${name} Print two numbers whose sum is ${n}.`,
        tests: [{ input: '', output: `${n} 0` }],
        checker: { source: `import sys\nsys.exit(0 if sum(map(int, open(sys.argv[2]).read().split())) == ${n} else 1)` },
      },
      right: python(`print(${n - 5}, 5)`),
      wrong: python(`print(${n}, 1)`),
    }),
  },
  shell: {
    scenario: 'shell',
    share: 50,
    make: (name, n) => ({
      task: {
        instruction: `${name} Write a script add.sh that adds ${n} to its argument.`,
        check: `[ "$(judged bash add.sh 5)" = '${n + 5}' ]`,
      },
      right: [bash(`echo 'echo $(($1 + ${n}))' > add.sh`), finish('done')],
      wrong: [bash(n % 10 === 0 ? "echo 'while :; do :; done' > add.sh" : `echo 'echo $(($1 + ${n} + 1))' > add.sh`), finish('done')],
    }),
  },
  swe: { scenario: 'swe', share: 20, make: makeSwe },
  gym: {
    scenario: 'gym',
    share: 20,
    make: (name, n) => ({
      task: { kind: 'gymnasium', env: 'verdict_envs:Count', args: { name, to: 3 + (n % 2) } },
      right: ['1', '2', '3', '4'],
      wrong: ['7'],
    }),
  },
  harbor: {
    scenario: 'harbor',
    share: 20,
    make: (name, n, folder) => {
      writeHarborTask(folder, name, n);
      const wrong = n % 10 === 0 ? 'while :; do :; done' : `echo $(($1 + ${n} + 1))`;
      return {
        task: { folder },
        right: [bash(`echo 'echo $(($1 + ${n}))' > /app/add.sh`), finish('done')],
        wrong: [bash(`echo '${wrong}' > /app/add.sh`), finish('done')],
      };
    },
  },
  'a scenario in Python': {
    scenario: 'verdict-python',
    share: 20,
    make: (name, n) => ({
      task: { name, number: n },
      right: [bash(`echo 'print(${n} * 2)' > double.py`), finish('done')],
      wrong: [bash(`echo 'print(${n} * 2 + 1)' > double.py`), finish('done')],
    }),
  },
};

const repository = `set -e
export HOME=/tmp GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b master /workspace/repo; cd /workspace/repo
mkdir calc tests; printf '' > tests/__init__.py
printf 'def double(a):\\n    return a * 3\\n' > calc/__init__.py
git add -A; git commit -q -m base; git tag base`;

function makeSwe(name: string, n: number): ReturnType<MakeCase> {
  const repair = (by: string) => [bash(`cd /workspace/repo && sed -i 's/a \\* 3/a * ${by}/' calc/__init__.py`), finish('done')];
  return {
    task: {
      ...{ instance_id: `calc-${n}`, repo: 'example/calc', base_commit: 'base', workdir: '/workspace/repo', setup: repository },
      ...{
        problem_statement: `${name} double(4) is 12.`,
        test_command: 'python3 -m unittest -v tests.test_double',
        log_parser: 'unittest',
      },
      ...{ test_patch: testPatch, FAIL_TO_PASS: ['test_double (tests.test_double.DoubleTests.test_double)'] },
    },
    right: repair('2'),
    wrong: repair('4'),
  };
}

/** Environments of the gym scenario, as a module. */
export const gymModule = `class Count:
    def __init__(self, name, to):
        self.name, self.to = name, to

    def reset(self, seed=None):
        self.at = 0
        return f"{self.name} Count to {self.to}.", {}

    def step(self, action):
        right = action == str(self.at + 1)
        self.at += right
        done = self.at == self.to or not right
        return f"at {self.at}", 1.0 if self.at == self.to else 0.0, done, False, {}
`;

/** A scenario whose verifier is in Python, and runs a program of the agent. */
export const pythonScenario = `from dataclasses import dataclass
from millrace.scenario import Opening, Rollout, Score

name = "verdict-python"
sandbox: dict = {}

@dataclass
class VerdictTask:
    name: str
    number: int

Task = VerdictTask

def init(rollout: Rollout) -> Opening:
    return Opening(f"{rollout.task.name} Write double.py.", tools=["bash", "finish"])

def collect(rollout: Rollout) -> bytes:
    return rollout.sandbox.read_file("/workspace/double.py")

def evaluate(rollout: Rollout) -> Score:
    sandbox = rollout.open_sandbox()
    sandbox.write_file("/workspace/double.py", rollout.artifact)
    result = sandbox.exec(["python3", "/workspace/double.py"], timeout_s=5)
    return Score(1.0 if result.stdout.strip() == str(rollout.task.number * 2) else 0.0, {"out": result.stdout, "timed_out": result.timed_out})
`;

/** As many right as wrong ones. `folder` is for tasks that are files; `part` of one is every case. */
export function makeVerdictCases(folder: string, part = 1): VerdictCase[] {
  let number = 0;
  return Object.values(kinds).flatMap(({ scenario, share, make }) =>
    Array.from({ length: 2 * Math.ceil(share * part) }, (_, at) => {
      const isRight = at % 2 === 0;
      const name = `Case ${number++}.`;
      const { task, right, wrong } = make(name, Math.floor(at / 2), join(folder, String(number)));
      return { scenario, isRight, task, turns: isRight ? right : wrong };
    }),
  );
}
