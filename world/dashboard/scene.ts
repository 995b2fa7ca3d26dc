// A service with something to look at: rollouts of several scenarios over several policy versions, a batch, failures, groups whose
// siblings differ, hostile output, and one trajectory of more than 64,000 tokens. Everything runs in real sandboxes with the fake backend.

import { type Client, openClient } from '@millrace/client';
import { gatewayOpened, type SubmissionInput } from '@millrace/protocol';
import { type FakeBackend, openFakeBackend, type Policy, qwen3Folder, renderCall, TestService } from '@millrace/testkit';
import { z } from 'zod';

export const adminKey = 'dashboard-admin-key';
export const readKey = 'dashboard-read-key';

export interface DashboardScene extends AsyncDisposable {
  readonly service: TestService;
  readonly client: Client;
  readonly backend: FakeBackend;
}

export async function openScene({ latencyMs = 5 } = {}): Promise<DashboardScene> {
  await using stack = new AsyncDisposableStack();
  const backend = stack.use(await openFakeBackend({ policy, latencyMs, cacheTokens: 400_000, model: 'Qwen3-8B' }));
  const service = stack.use(
    await TestService.open({
      workers: 2,
      tokenizer: qwen3Folder(),
      http: { keys: [adminKey], readKeys: [readKey] },
      pipeline: { initSlots: 4, runSlots: 16, evaluateSlots: 4 },
    }),
  );
  const client = stack.use(openClient({ url: service.url, key: adminKey }));
  await client.backends.join({ id: 'gpu-0', url: backend.url, model: 'Qwen3-8B', policy_version: 1 });
  const owned = stack.move();
  return { service, client, backend, [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose]() };
}

/** Runs everything to its end. */
export async function fillScene(scene: DashboardScene, { versions = 6, groups = 4 } = {}): Promise<void> {
  const { client } = scene;
  for (let version = 1; version <= versions; version++) {
    await runAll(client, [
      ...Array.from({ length: groups }, (_, group) => makeSiblings(`sum-${version}-${group}`, makeSum(version * 10 + group), 4)).flat(),
      ...makeSiblings(`fix-${version}`, fixTask, 4),
    ]);
    await postStep(scene, version, version === versions);
    if (version === versions) break;
    await client.policy.pause();
    await client.policy.resume({ policy_version: version + 1 });
  }
  await runAll(client, failing);
  const batch = await client.batches.create({
    id: 'step-7',
    series: 'run-a',
    scenario: 'math',
    tasks: batchTasks,
    group_size: 4,
    target: 4,
  });
  for await (const _ of client.batches.groups(batch.id)); // to its end
}

const completion = z.object({ choices: z.tuple([z.object({ message: z.looseObject({}) })]) });

/** An agent of others through a gateway: its main line, a sub-agent, a question without tools, and a history that was edited. */
export async function openBranches({ service }: DashboardScene): Promise<void> {
  const post = async (url: string, key: string, body: unknown) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
    const reply = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!reply.ok) throw new Error(`${url}: ${await reply.text()}`);
    return await reply.json();
  };
  const gateway = gatewayOpened.parse(await post(`${service.url}/v1/gateways`, adminKey, { id: 'several-agents' }));
  const parameters = { type: 'object', properties: { command: { type: 'string' } } };
  const tools = [{ type: 'function', function: { name: 'bash', description: 'Runs a command.', parameters } }];
  const ask = async (messages: readonly unknown[], given: readonly unknown[] = tools) => {
    const body = { model: 'policy', messages, ...(given.length === 0 ? {} : { tools: given }) };
    const reply = completion.parse(await post(`${gateway.base_url}/chat/completions`, gateway.key, body));
    return reply.choices[0].message;
  };
  const opening = [{ role: 'user', content: 'Plan the work: say what is first.' }];
  const history = [...opening, await ask(opening), { role: 'user', content: 'What is 12 × 11? Go on.' }];
  await ask(history);
  await ask([{ role: 'user', content: 'What is 7 × 9? You are the sub-agent.' }]);
  await ask([{ role: 'user', content: 'A title for: What is 3 × 3?' }], []);
  await ask([...history.slice(0, 2), { role: 'user', content: 'What is 12 × 12 instead?' }]);
  await post(`${service.url}/v1/gateways/${gateway.id}/reward`, adminKey, { reward: 1 });
}

/** What a trainer posts after a step: recomputed logprobs that are a little off, and in the last step more. */
async function postStep({ service, client }: DashboardScene, step: number, isLast: boolean): Promise<void> {
  const samples = [];
  for (const index of [0, 1, 2, 3]) {
    const id = `fix-${step}:${index}`;
    const { segments } = await client.trajectory(id);
    const recorded = segments.filter(({ kind }) => kind === 'sampled').flatMap(({ logprobs }) => [...logprobs]);
    const off = isLast ? 0.4 : 0.02;
    samples.push({
      rollout_id: id,
      advantage: index === 0 ? 1.5 : -0.5,
      logprobs: recorded.map((value, at) => value + off * Math.sin(step + at)),
      kl: recorded.map((_, at) => 0.01 * (1 + Math.cos(at))),
    });
  }
  const numbers = { loss: 0.4 / step, kl: 0.002 * step, entropy: 1.6 - 0.1 * step, clip_share: 0.01 * step };
  const reply = await fetch(`${service.url}/v1/trainer/steps`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${adminKey}` },
    body: JSON.stringify({ run: 'run-a', step, policy_version: step + 1, ...numbers, metrics: { lr: 1e-6 }, samples }),
  });
  if (!reply.ok) throw new Error(await reply.text());
}

export async function runAll(client: Client, submissions: readonly SubmissionInput[]): Promise<void> {
  for await (const _ of await client.run([...submissions])); // to their ends
}

function makeSiblings(group: string, one: Omit<SubmissionInput, 'id'>, count: number): SubmissionInput[] {
  return Array.from({ length: count }, (_, index) => ({ ...one, group, id: `${group}:${index}` }));
}

function makeSum(number: number): Omit<SubmissionInput, 'id'> {
  const [a, b] = [17 + number, 23 + 3 * number];
  return { scenario: 'math', task: { question: `What is ${a} × ${b}?`, answer: String(a * b) }, metadata: { set: 'products' } };
}

const batchTasks = Array.from({ length: 14 }, (_, index) => {
  const [a, b] = [41 + index, 57 + index];
  return { question: `What is ${a} × ${b}?`, answer: String(a * b) };
});

const greet = 'greet.sh should print "hello world", and does not. Find out why, and fix it.';

const fixTask: Omit<SubmissionInput, 'id'> = {
  scenario: 'shell',
  task: {
    instruction: greet,
    setup:
      'git init -q . && printf \'#!/bin/sh\\n# Greets.\\nname=wrld\\necho "hello $name"\\n\' > greet.sh && git add . && git -c user.name=a -c user.email=a@b commit -qm first',
    check: '[ "$(judged sh greet.sh)" = "hello world" ]',
  },
};

const failing: readonly SubmissionInput[] = [
  ...['a', 'b', 'c'].map((name) => ({
    id: `broken-setup-${name}`,
    scenario: 'shell',
    task: { instruction: 'Nothing to do.', setup: 'cat missing-dataset.csv', check: 'true' },
  })),
  {
    id: 'slow-check',
    scenario: 'shell',
    task: { instruction: 'Nothing to do, slowly.', check: 'sleep 30' },
    limits: { evaluate_timeout_s: 1 },
  },
];

export const hostile: SubmissionInput = {
  id: 'hostile',
  scenario: 'shell',
  task: { instruction: 'Print the hostile file.', check: 'true' },
};

export const hostileText = '<img src=x onerror="window.hacked=1"><script>window.hacked=2</script> \u202egnp.exe\u202c';

/** Of more than 64,000 tokens. */
export const long: SubmissionInput = {
  id: 'long',
  scenario: 'shell',
  task: { instruction: 'Count for a long time.', check: 'true' },
  limits: { max_context_tokens: 100_000, max_turns: 10 },
  sampling: { max_tokens: 20_000 },
};

const flood = "python3 -c \"print(''.join('\\x1b[3%dm%d' % (i % 8, i % 10) for i in range(20000)))\"";
const colours = "printf '\\033[1;32mPASSED\\033[0m test_hello\\n\\033[1;31mFAILED\\033[0m test_world\\n'; git diff";

const policy: Policy = (input) => {
  const opening = input.opening();
  const id = input.sessionId ?? '';
  const [, a, b] = /What is (\d+) × (\d+)/.exec(opening) ?? [];
  if (a !== undefined) return { text: answerSum(Number(a), Number(b), id, input.promptIds.length) };
  if (opening.includes('greet.sh')) return { text: pick(fixes[isLucky(id, toChance(id)) ? 0 : 1], input.turn) };
  if (opening.includes('hostile file')) return { text: pick(hostileTurns, input.turn) };
  if (opening.includes('Count for a long time') && input.turn < 4)
    return {
      tokenIds: Int32Array.from([
        ...input.encode('one two three four five six seven eight nine ten '.repeat(1650)),
        ...input.encode(bash('true')),
      ]),
    };
  return { text: renderCall('finish', { answer: 'done' }) };
};

function answerSum(a: number, b: number, id: string, salt: number): string {
  const isRight = isLucky(id === '' ? String(salt) : id, toChance(id));
  const [tens, ones] = [Math.floor(b / 10) * 10, b % 10];
  const sum = isRight ? a * b : a * b + 10;
  return `<think>\n${a} × ${b} is ${a} × ${tens} plus ${a} × ${ones}: ${a * tens} + ${a * ones}.\n</think>\n\nThe answer is \\boxed{${sum}}.`;
}

/** It grows with the policy version, which is in the id. */
function toChance(id: string): number {
  return 0.1 + 0.13 * Number(/^(?:sum|fix)-(\d+)/.exec(id)?.[1] ?? 4);
}

function bash(command: string): string {
  return renderCall('bash', { command });
}

const fixes = [
  [
    `<think>\nI should look at the script before I change it.\n</think>\n\nLet me read the script.\n${bash('cat greet.sh; sh greet.sh')}`,
    `The name is misspelt. I will fix it and show the change.\n${bash(`sed -i 's/wrld/world/' greet.sh; ${colours}`)}`,
    `It prints the right greeting.\n${renderCall('finish', { answer: 'fixed' })}`,
  ],
  [
    `<think>\nI should look at the script before I change it.\n</think>\n\nI will write the script again.\n${bash("echo 'echo Hello World' > greet.sh; sh greet.sh")}`,
    renderCall('finish', { answer: 'done' }),
  ],
] as const;

const hostileTurns = [
  `${hostileText}\n${bash(`printf '%s\\n' '${hostileText.replaceAll("'", '')}'; printf '\\033]0;title\\007\\033[2J\\033[31mred\\033[0m\\n'`)}`,
  bash(flood),
  `[click](javascript:alert(1)) <b>bold</b>\n${renderCall('finish', { answer: '</script><script>window.hacked=3</script>' })}`,
];

function pick(turns: readonly string[], turn: number): string {
  return turns[Math.min(turn, turns.length - 1)] ?? '';
}

/** The same for the same id. */
function isLucky(id: string, chance: number): boolean {
  let hash = 2166136261;
  for (const character of id) hash = Math.imul(hash ^ character.charCodeAt(0), 16777619) >>> 0;
  hash = Math.imul(hash ^ (hash >>> 15), 2246822519) >>> 0;
  return ((hash ^ (hash >>> 13)) >>> 0) / 2 ** 32 < chance;
}
