// All scenarios at once, through the whole service, in Apptainer and as an ordinary user: 300 rollouts whose agents are scripts that solve a
// known share. Every reward is exactly the one that its script earns.

import assert from 'node:assert/strict';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { SubmissionInput } from '@millrace/protocol';
import {
  findWrongToken,
  makeTempFolder,
  openFakeBackend,
  openFakeTokens,
  qwen3Folder,
  renderCall,
  runAsUser,
  scriptedPolicy,
  skipAsUser,
  TestService,
} from '@millrace/testkit';
import { goldPatch, makeTask } from '../../packages/scenarios/test/swe/bed.ts';
import { makeGitImage } from './python-image.ts';

const examples = join(import.meta.dirname, '../../examples');
const bash = (command: string) => renderCall('bash', { command });
const finish = renderCall('finish', {});

/** One kind of agent: a mark in what it reads, what it does, and the reward that it earns. */
interface Part {
  readonly scenario: string;
  readonly mark: string;
  readonly count: number;
  readonly reward: number;
  readonly turns: readonly string[];
  task(mark: string): unknown;
}

const math = (mark: string) => ({ question: `${mark}: 17 × 23?`, answer: '391' });
const code = (mark: string) => ({
  question: `${mark}: print the sum of the two numbers.`,
  tests: [
    { input: '1 2\n', output: '3' },
    { input: '0 0\n', output: '0' },
  ],
  credit: 'partial',
});
const numeric = (mark: string) => ({ kind: 'numeric', question: `${mark}: How far is it?`, answer: '1.5 km' });
const choice = (mark: string) => ({ kind: 'choice', question: `${mark}: Which?`, options: ['x', 'y', 'z'], answer: 'B' });
const shell = (mark: string) => ({
  instruction: `${mark}: write 42 to answer.txt`,
  setup: 'echo 41 > hint.txt',
  check: '[ "$(cat answer.txt)" = 42 ]',
});
const swe = (mark: string) => makeTask({ problem_statement: `${mark}: double(4) is 12.` });
const gym = (mark: string) => ({ kind: 'gymnasium', env: 'mix_env:Count', args: { to: 2, mark }, seed: 1 });
const program = (body: string) => `\`\`\`python\n${body}\n\`\`\``;

/** The Python scenario is examples/guess, whose opening has the highest number. */
const guess = (most: number) => () => ({ number: 7, most });

function makeParts(harbor: Readonly<Record<string, string>>): readonly Part[] {
  const folder = (mark: string) => ({ folder: harbor[mark] });
  return [
    { scenario: 'math', mark: 'math-right', count: 40, reward: 1, turns: ['\\boxed{391}'], task: math },
    { scenario: 'math', mark: 'math-wrong', count: 20, reward: 0, turns: ['\\boxed{390}'], task: math },
    { scenario: 'code', mark: 'code-right', count: 15, reward: 1, turns: [program('print(sum(map(int, input().split())))')], task: code },
    { scenario: 'code', mark: 'code-half', count: 10, reward: 0.5, turns: [program('print(0)')], task: code },
    { scenario: 'code', mark: 'code-none', count: 5, reward: 0, turns: ['I cannot.'], task: code },
    { scenario: 'stem', mark: 'stem-right', count: 30, reward: 1, turns: ['\\boxed{1500 m}'], task: numeric },
    { scenario: 'stem', mark: 'stem-wrong', count: 20, reward: 0, turns: ['\\boxed{1500 s}'], task: numeric },
    { scenario: 'stem', mark: 'stem-letter', count: 10, reward: 1, turns: ['\\boxed{B}'], task: choice },
    {
      scenario: 'shell',
      mark: 'shell-right',
      count: 25,
      reward: 1,
      turns: [bash('expr $(cat hint.txt) + 1 > answer.txt'), finish],
      task: shell,
    },
    { scenario: 'shell', mark: 'shell-wrong', count: 15, reward: 0, turns: [bash('cp hint.txt answer.txt'), finish], task: shell },
    { scenario: 'swe', mark: 'swe-right', count: 8, reward: 1, turns: [bash(`git apply - <<'END'\n${goldPatch}END`), finish], task: swe },
    { scenario: 'swe', mark: 'swe-wrong', count: 4, reward: 0, turns: [bash('echo "# fixed" >> calc/__init__.py'), finish], task: swe },
    {
      scenario: 'harbor',
      mark: 'harbor-right',
      count: 12,
      reward: 1,
      turns: [bash(`printf 'echo "hello $1"\\n' > greet.sh`), finish],
      task: folder,
    },
    { scenario: 'harbor', mark: 'harbor-wrong', count: 6, reward: 0, turns: [finish], task: folder },
    { scenario: 'gym', mark: 'gym-right', count: 20, reward: 1, turns: ['1', '2'], task: gym },
    { scenario: 'gym', mark: 'gym-half', count: 10, reward: 0.5, turns: ['1', '7', '7', '7'], task: gym },
    { scenario: 'guess', mark: 'from 1 to 101', count: 25, reward: 1, turns: ['7'], task: guess(101) },
    { scenario: 'guess', mark: 'from 1 to 102', count: 15, reward: 0.5, turns: ['5', '7'], task: guess(102) },
    { scenario: 'guess', mark: 'from 1 to 103', count: 10, reward: 0, turns: ['1'], task: guess(103) },
  ];
}

const environment = `
class Count:
    """Half a point for each of the numbers from 1."""

    def __init__(self, to, mark):
        self.to, self.mark, self.at = to, mark, 0

    def reset(self, seed=None):
        return f"{self.mark}: count to {self.to}.", {}

    def step(self, action):
        right = action == str(self.at + 1)
        self.at += right
        return f"at {self.at}", 0.5 if right else 0.0, self.at == self.to, False, {}
`;

async function makeHarbor(folder: string): Promise<Record<string, string>> {
  const made: Record<string, string> = {};
  for (const mark of ['harbor-right', 'harbor-wrong']) {
    const path = join(folder, mark);
    await cp(join(examples, 'harbor/greeting'), path, { recursive: true });
    const instruction = join(path, 'instruction.md');
    await writeFile(instruction, `${mark}: ${await readFile(instruction, 'utf8')}`);
    made[mark] = path;
  }
  return made;
}

async function playMix(report: (line: string) => void): Promise<void> {
  await using temporary = await makeTempFolder('mix');
  const { path } = temporary;
  const image = join(path, 'image');
  await makeGitImage(image);
  const packages = join(path, 'packages');
  await mkdir(packages);
  await writeFile(join(packages, 'mix_env.py'), environment);
  const parts = makeParts(await makeHarbor(path));
  const policy = scriptedPolicy(parts.map(({ mark, turns }) => ({ match: new RegExp(mark), turns })));
  await using backend = await openFakeBackend({ policy, tokens: await openFakeTokens() });
  await using service = await TestService.open({
    workers: 2,
    tokenizer: qwen3Folder(),
    scenarios: [join(examples, 'guess/scenario.py')],
    gym: { packages },
    sandbox: { driver: 'apptainer', image, images: join(path, 'images'), imageNames: { 'debian:12-slim': image } },
    pipeline: { initSlots: 4, readySlots: 8, runSlots: 16, evaluateSlots: 4 },
  });
  const { client } = service;
  await client.backends.join({ url: backend.url });
  const limits = { max_retries: 2, max_turns: 4 };
  const expected = new Map<string, number>();
  const submissions = parts.flatMap(({ scenario, mark, count, reward, task }) =>
    Array.from({ length: count }, (_, index): SubmissionInput => {
      const id = `${mark.replaceAll(' ', '-')}.${index}`;
      expected.set(id, reward);
      return { id, scenario, task: task(mark) as SubmissionInput['task'], group: mark.replaceAll(' ', '-'), limits };
    }),
  );
  assert.equal(submissions.length, 300);
  // The scenarios take turns, so that all of them run at the same time.
  const order = submissions.map((one, index) => ({ one, key: (index * 7919) % submissions.length })).sort((a, b) => a.key - b.key);
  await client.submit(order.map(({ one }) => one));
  const wrong: unknown[] = [];
  let total = 0;
  for await (const { id, state, reward, failure } of client.results(submissions.map(({ id }) => id ?? ''))) {
    total += 1;
    if (state !== 'done' || failure || reward !== expected.get(id))
      wrong.push({ id, state, reward, failure, expected: expected.get(id), read: await readTools(client, id) });
  }
  assert.deepEqual(wrong, []);
  assert.equal(total, 300);
  for (const { mark } of parts) assert.deepEqual(findWrongToken(await client.trajectory(`${mark.replaceAll(' ', '-')}.0`)), []);
  report(`300 rollouts of ${new Set(parts.map(({ scenario }) => scenario)).size} scenarios, as user ${process.getuid?.()}`);
}

/** What the agent's tools answered, to explain a wrong reward. */
async function readTools(client: TestService['client'], id: string): Promise<readonly string[]> {
  const view = await client.trajectory(id).catch(() => undefined); // a rollout that failed early has none
  return (view?.segments ?? []).flatMap(({ messages }) => messages.filter(({ role }) => role === 'tool').map(({ content }) => content));
}

if (process.getuid?.() === 0)
  test('300 rollouts of all scenarios have exactly the expected rewards, as an ordinary user', { timeout: 900_000, skip: skipAsUser }, () =>
    runAsUser(import.meta.filename, { least: 1 }),
  );
else
  test('300 rollouts of all scenarios have exactly the expected rewards', { timeout: 900_000 }, (context) =>
    playMix((line) => context.diagnostic(line)),
  );
