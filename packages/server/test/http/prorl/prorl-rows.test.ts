// One row of each data source of ProRL Agent, as its scripts and data sets write it, through /process with the scenarios of a service: which
// scenario takes it, with which tools, and by which rule it is graded. The table in docs/prorl.md is this one.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { limits } from '@millrace/protocol';
import { loadScenarios } from '@millrace/scenarios';
import { type Floor, makeFailure, openFloor } from '../floor.ts';

const chat = (content: string) => [{ role: 'user', content }];
const truth = (ground_truth: unknown) => ({
  ground_truth: typeof ground_truth === 'string' ? ground_truth : JSON.stringify(ground_truth),
  style: 'rule',
});
const boxed = " Let's think step by step and output the final answer within \\boxed{}.";
const coded = '\n\nWrite Python code to solve the problem. Present the code in \n```python\nYour code\n```\nat the end.';
const stdio = { inputs: ['1\n'], outputs: ['2\n'] };
const swe = {
  instance_id: 'getmoto__moto-5752',
  repo: 'getmoto/moto',
  base_commit: 'b2300f1eae1323e3e8bc45f97e530ce129dff12e',
  patch: 'diff --git a/x.py b/x.py\n',
  test_patch: 'diff --git a/tests/t.py b/tests/t.py\n',
  problem_statement: 'It is wrong.',
  hints_text: '',
  created_at: '2022-12-10',
  version: '4.0',
  FAIL_TO_PASS: ['tests/t.py::a'],
  PASS_TO_PASS: [],
};
const r2e = {
  docker_image: `namanjain12/aiohttp_final:${'a'.repeat(40)}`,
  instance_id: `namanjain12_aiohttp_final_${'a'.repeat(40)}`,
  repo: 'namanjain12/aiohttp_final',
  repo_name: 'aiohttp',
  version: 'a'.repeat(40),
  base_commit: 'a'.repeat(40),
  commit_hash: 'a'.repeat(40),
  problem_statement: 'p',
  expected_output_json: '{"T.a": "PASSED"}',
  parsed_commit_content: '{"file_diffs": []}',
};

interface Expected {
  readonly row: Record<string, unknown>;
  readonly scenario: string;
  readonly tools: readonly string[];
  readonly task?: Record<string, unknown>;
}

const coder = ['bash', 'ipython', 'str_replace_editor', 'think', 'finish'];
const reasoner = ['ipython', 'think', 'finish'];
const engineer = ['bash', 'str_replace_editor', 'finish'];
const codeRow = (ground_truth: unknown) => ({ prompt: chat(`Double it.${coded}`), ability: 'code', reward_model: truth(ground_truth) });
const code = { scenario: 'code', tools: coder, task: { question: 'Double it.', submit: 'answer' } };
const boxOnly = { require_box: true };

const sources: Readonly<Record<string, Expected>> = {
  deepscaler: {
    row: { prompt: chat(`What is 1 + 1?${boxed}`), ability: 'math', reward_model: truth('2') },
    scenario: 'math',
    tools: reasoner,
    task: { question: 'What is 1 + 1?', answer: '2', ...boxOnly },
  },
  stem: {
    row: { prompt: chat(`What accelerates a falling stone?${boxed}`), reward_model: truth('gravity') },
    scenario: 'stem',
    tools: reasoner,
    task: { kind: 'text', question: 'What accelerates a falling stone?', answer: 'gravity', ...boxOnly },
  },
  'stem (a quantity)': {
    row: { data_source: 'stem', prompt: chat('How fast?'), reward_model: truth('9.81 m/s^2') },
    scenario: 'stem',
    tools: reasoner,
    task: { kind: 'numeric', answer: '9.81 m/s^2', ...boxOnly },
  },
  codecontests: { row: codeRow(stdio), ...code },
  apps: { row: codeRow({ ...stdio, fn_name: null }), ...code },
  codeforces: { row: codeRow(stdio), ...code },
  taco: { row: codeRow({ fn_name: 'double', inputs: [[1]], outputs: [[2]] }), ...code },
  deepcoder: { row: codeRow(stdio), ...code },
  deepcoder_lcbv5: { row: codeRow([{ input: '1\n', output: '2\n', testtype: 'stdin', metadata: { func_name: null } }]), ...code },
  deepcoder_primeintellect: { row: codeRow([{ type: 'function_call', fn_name: 'double', input: [1], output: [2] }]), ...code },
  swebench: { row: { ...swe, data_kind: 'swebench' }, scenario: 'swe', tools: engineer },
  'swe-gym': { row: swe, scenario: 'swe', tools: engineer },
  'swebench (R2E-Gym)': { row: { data_source: 'swebench', data_kind: 'r2egym', ...r2e }, scenario: 'swe', tools: engineer },
  'swebench (multimodal)': {
    row: { data_source: 'swebench', data_kind: 'swebench_multimodal', ...swe, repo: 'a/b', image_assets: '{"problem_statement": []}' },
    scenario: 'swe',
    tools: engineer,
  },
  'no data_source': { row: { data_source: null, ...swe }, scenario: 'swe', tools: engineer },
  rStar: { row: codeRow(stdio), scenario: 'reward-server', tools: [] },
  tool_call: { row: { prompt: chat('Call it.'), reward_model: truth('x') }, scenario: 'reward-server', tools: [] },
  if_eval: { row: { prompt: chat('Say hi.'), reward_model: truth({ rule: 'hi' }) }, scenario: 'reward-server', tools: [] },
  llm_judge: { row: { prompt: chat('Why?'), reward_model: truth('because') }, scenario: 'reward-server', tools: [] },
  reasoning_gym: {
    row: {
      prompt: chat('Sort.'),
      reward_model: truth(''),
      extra_info: { reward_model: { entry: { answer: '1' }, reasoning_task: 'sort' } },
    },
    scenario: 'reward-server',
    tools: [],
  },
};

/** Every column of the other rows, as its script that joins data sets fills them. */
const columns = Object.fromEntries(Object.values(sources).flatMap(({ row }) => Object.keys(row).map((name) => [name, null])));

let floor: Floor;
before(async () => {
  floor = await openFloor({
    scenarios: await loadScenarios([], { rewardServers: ['127.0.0.1'] }),
    sandbox: { driver: 'apptainer', image: 'docker://debian' },
  });
  await floor.worker.register();
  await floor.call('POST', '/start');
  await floor.call('POST', '/add_llm_server', { address: '10.0.0.1:8000' });
});
after(async () => await floor[Symbol.asyncDispose]());

async function submit(instance: Record<string, unknown>): Promise<{ scenario: string; task: Record<string, unknown> }> {
  const answer = floor.call('POST', '/process', { instance, sampling_params: {} });
  while ((await floor.store.counts()).queued === 0) {
    const hint = new Promise<void>((resolve) => {
      const stop = floor.store.onHint(() => {
        stop();
        resolve();
      });
    });
    const early = await Promise.race([hint, answer]);
    if (early !== undefined) throw new Error(JSON.stringify(early.body.detail));
  }
  const claimed = await floor.worker.claim();
  await floor.worker.finish(claimed, { state: 'failed', failure: makeFailure() });
  await answer;
  return claimed.submission;
}

for (const [source, { row, scenario, tools, task = {} }] of Object.entries(sources)) {
  test(`a row of ${source} runs as ${scenario} with its tools, also with the null columns of all other data sets`, async () => {
    const instance = { data_source: source, trajectory_id: 0, ...row };
    const scenarios = await loadScenarios([], { rewardServers: ['127.0.0.1'] });
    for (const given of [instance, { ...columns, ...instance }]) {
      const taken = await submit(given);
      assert.equal(taken.scenario, scenario);
      const parsed = await scenarios.get(scenario)?.task.safeParseAsync(taken.task);
      assert.ok(parsed?.success);
      const data = parsed.data as Record<string, unknown>;
      assert.deepEqual(data.tools, tools);
      for (const [name, value] of Object.entries(task)) assert.deepEqual(data[name], value, name);
    }
  });
}

test('a row that our scenario cannot read goes to the reward server, and is refused without one', async () => {
  const instance = {
    data_source: 'taco',
    prompt: chat('Draw it.'),
    reward_model: truth({ rubric: 'nice' }),
    instance_id: 'x',
    trajectory_id: 1,
  };
  assert.equal((await submit(instance)).scenario, 'reward-server');
  await using alone = await openFloor({ scenarios: await loadScenarios([]) });
  await alone.call('POST', '/start');
  await alone.call('POST', '/add_llm_server', { address: '10.0.0.1:8000' });
  const { status, body } = await alone.call('POST', '/process', { instance, sampling_params: {} });
  assert.deepEqual([status, /inputs/.test(body.detail)], [400, true], body.detail);
});

test('a row whose sandbox no machine can open is refused, and not given to another scenario', async () => {
  await using other = await openFloor({ scenarios: await loadScenarios([], { rewardServers: ['127.0.0.1'] }) });
  await other.call('POST', '/start');
  const { row } = sources['swe-gym'] ?? assert.fail();
  const reply = await other.call('POST', '/process', {
    instance: { data_source: 'swe-gym', trajectory_id: 0, ...row },
    sampling_params: {},
  });
  assert.match(JSON.stringify(reply.body.detail), /bubblewrap cannot run images/);
});

test('as in ProRL Agent, an answer outside a box and a program outside the message of finish are wrong', async () => {
  const scenarios = await loadScenarios([]);
  const reward = async (name: string, row: Record<string, unknown>, answer: string) => {
    const scenario = scenarios.get(name) ?? assert.fail(name);
    const parsed = await scenario.task.safeParseAsync(scenario.fromInstance?.(row));
    assert.ok(parsed.success);
    const rest = { artifact: Buffer.alloc(0), sampledTokens: 0, limits: limits.parse({}), signal: AbortSignal.timeout(10_000) };
    const openSandbox = () => Promise.reject(new Error('no sandbox'));
    return (await scenario.evaluate({ task: parsed.data, end: { stopReason: 'tool_stopped', answer }, openSandbox, ...rest })).reward;
  };
  const { deepscaler, stem, codecontests } = sources;
  for (const [answer, expected] of [
    ['The answer is 2', 0],
    ['$2$', 0],
    ['2', 0],
    ['It is \\boxed{2}.', 1],
  ] as const)
    assert.equal(await reward('math', deepscaler?.row ?? {}, answer), expected, answer);
  for (const [answer, expected] of [
    ['The answer is gravity.', 0],
    ['gravity', 0],
    ['\\boxed{Gravity}', 1],
  ] as const)
    assert.equal(await reward('stem', stem?.row ?? {}, answer), expected, answer);
  assert.equal(await reward('code', codecontests?.row ?? {}, 'See /workspace/solution.py.'), 0);
});

test('docs/prorl.md names every data source of this table with its scenario', async () => {
  const text = await readFile(new URL('../../../../../docs/prorl.md', import.meta.url), 'utf8');
  const lines = text.split('\n').filter((line) => line.startsWith('| `'));
  for (const [source, { scenario }] of Object.entries(sources)) {
    const name = source.replace(/ .*/, '').replace(/^deepcoder.*/, 'deepcoder…');
    if (name === 'no') continue;
    assert.ok(
      lines.some((line) => line.includes(`\`${name}\``) && line.includes(`\`${scenario}\``)),
      source,
    );
  }
});
