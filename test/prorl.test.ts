// ProRL Agent's trainer against a whole service: its own LLM servers, its DAPO flow, its math tasks with their tools. After three batches no
// job, no call and no sandbox is left.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { prorlStatus } from '@millrace/protocol';
import { probeBubblewrap } from '@millrace/sandbox';
import { openFakeBackend, type Policy, processesInSandboxesOf, qwen3Folder, renderCall, TestService } from '@millrace/testkit';
import { makeTask, repair } from '../packages/scenarios/test/swe/bed.ts';
import { DapoClient } from '../packages/server/test/http/prorl/dapo-client.ts';
import { post, toTrainingRow } from '../packages/server/test/http/prorl/verl-client.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

/** Thinks, then answers. Of each three prompts one is always solved, one never, and one by half of the siblings. */
const policy: Policy = ({ turn, sessionId = '' }) => {
  const [, prompt = '0', trajectory = '0'] = /^p(\d+)_(\d+)_/.exec(sessionId) ?? [];
  if (turn === 0) return { text: `<think>\nI add.\n</think>\n\n${renderCall('think', { thought: `prompt ${prompt}` })}` };
  const kind = Number(prompt) % 3;
  const isRight = kind === 0 || (kind === 1 && Number(trajectory) % 2 === 0);
  return { text: renderCall('finish', { message: `The answer is \\boxed{${isRight ? Number(prompt) + 1 : -1}}.` }) };
};

/** Rows as its data sets hold them: the prompt and the ground truth as JSON. */
function makePrompt(index: number) {
  return {
    data_source: 'deepscaler',
    instance_id: `p${index}`,
    prompt: JSON.stringify([
      { role: 'user', content: `What is ${index} + 1? Let's think step by step and output the final answer within \\boxed{}.` },
    ]),
    reward_model: JSON.stringify({ style: 'rule', ground_truth: [String(index + 1)] }),
    extra_info: { split: 'train', index },
  };
}

const samplingParams = {
  model: 'hosted_vllm/Qwen/Qwen3-8B',
  api_key: 'dummy_key',
  native_tool_calling: true,
  temperature: '1.0',
  top_p: 1,
  max_iterations: 8,
  max_output_tokens: 2048,
  token_level_generation: true,
  custom_tokenizer: 'Qwen/Qwen3-8B',
  max_model_len: 4096,
};

describe("ProRL Agent's trainer", { skip, timeout: 120_000 }, () => {
  test('three DAPO batches with filter, refill, early cancel and clear-then-add leave no job', async () => {
    const open = () => openFakeBackend({ policy, engine: 'prorl', latencyMs: ({ index }) => (index % 5 === 4 ? 250 : 5) });
    await using first = await open();
    await using second = await open();
    await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder(), pipeline: { runSlots: 8, initSlots: 4 } });
    const { url } = service;
    const swap = async (address: string) => {
      assert.equal((await post(`${url}/clear_llm_server`)).status, 200);
      assert.equal((await post(`${url}/add_llm_server`, { address })).status, 200);
    };
    await swap(first.url);
    let next = 0;
    const nextPrompts = () => Array.from({ length: 3 }, () => makePrompt(next++));
    const client = new DapoClient({ url, samplingParams, trajectories: 4, batchSize: 2, workers: 6, nextPrompts });
    for (const batch of [0, 1, 2]) {
      // In the second batch the servers are replaced while jobs run.
      const groups = await client.sampleBatch(async (count) => {
        if (batch === 1 && count === 3) await swap(second.url);
      });
      assert.equal(groups.size, 2);
      for (const results of groups.values()) {
        assert.deepEqual(results.map(({ resolved }) => resolved).sort(), [false, false, true, true]);
        for (const result of results) checkResult(result);
      }
      if (batch === 0) await swap(second.url);
    }
    assert.ok(client.counts.filtered > 0 && client.counts.refills > 3 && client.counts.cancelled > 0, JSON.stringify(client.counts));
    await waitUntilIdle(service, [first, second]);
    assert.equal((await post(`${url}/start`)).status, 200);
    const status = prorlStatus.parse(await (await fetch(`${url}/status`)).json());
    assert.deepEqual([status.running, status.jobs, status.pending_jobs, status.total], [true, 0, 0, 0]);
  });
});

test('a row of a software engineering set is repaired through its routes, and its patch comes back', {
  skip,
  timeout: 120_000,
}, async () => {
  const turns = [renderCall('bash', { command: repair }), renderCall('finish', { message: 'done' })];
  await using backend = await openFakeBackend({ policy: ({ turn }) => ({ text: turns[Math.min(turn, 1)] ?? '' }), engine: 'prorl' });
  await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder() });
  const { url } = service;
  assert.equal((await post(`${url}/add_llm_server`, { address: backend.url })).status, 200);
  assert.equal((await post(`${url}/start`)).status, 200);
  const instance = { ...makeTask(), data_source: 'swegym', trajectory_id: 0 };
  const { status, body } = await post(`${url}/process`, { instance, sampling_params: samplingParams, job_id: 'swe-1' });
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual([body.success, body.resolved, body.error], [true, true, null]);
  assert.match(body.git_patch, /- {4}return a \* 3\n\+ {4}return a \* 2/);
});

/** What its client trains on: sampled tokens with logprobs, in one sequence. */
function checkResult(result: Parameters<typeof toTrainingRow>[0]): void {
  assert.deepEqual([result.success, result.finish, result.filter, result.error], [true, true, false, null]);
  const row = toTrainingRow(result);
  assert.ok(row.promptIds.length > 20 && row.lossMask.includes(1) && row.lossMask.includes(0));
  for (const [at, mask] of row.lossMask.entries()) if (mask === 0) assert.equal(row.logprobs[at], 0);
  assert.deepEqual(
    result.tools.map((tool: { function: { name: string } }) => tool.function.name),
    ['ipython', 'think', 'finish'],
  );
  const said = result.messages.filter(({ role }: { role: string }) => role === 'assistant');
  assert.match(said[0].content, /^<think>\nI add\.\n<\/think>/);
  assert.equal(said.at(-1).tool_calls[0].name, 'finish');
  const joined = result.messages.flatMap((message: { token_ids: number[] }) => message.token_ids);
  assert.deepEqual(joined, [...said.at(-1).input_ids, ...said.at(-1).token_ids]);
}

/** Every job has ended, no call is open, and no sandbox runs. */
async function waitUntilIdle(service: TestService, backends: readonly { readonly inFlight: number }[]): Promise<void> {
  for (;;) {
    const { rollouts } = await service.client.status();
    const { queued, init, ready, run, evaluate } = rollouts;
    const calls = backends.reduce((sum, { inFlight }) => sum + inFlight, 0);
    if (queued + init + ready + run + evaluate + calls === 0) break;
    await pause(50);
  }
  const { failed } = (await service.client.status()).rollouts;
  assert.equal(failed, 0, 'no job failed');
  await service.stop();
  while ((await processesInSandboxesOf(service.runDir)).length > 0) await pause(50);
  await service.start();
}
