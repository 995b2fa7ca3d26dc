// The turn loop over a real backend protocol: what does not fit is shortened or ends the rollout with its reason, and nothing that a
// model writes breaks the loop.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { type Conversation, Ledger, openConversation } from '@millrace/model';
import { backendId, definedOf, limits, sampling } from '@millrace/protocol';
import type { Tool } from '@millrace/scenarios';
import { FakeBackend, makeTempFolder, openFakeTokens, type Policy, qwen3Folder, renderCall, scriptedFaults } from '@millrace/testkit';
import type { AgentOptions, AgentTally } from '../../src/agent/agent-options.ts';
import { runTurns } from '../../src/agent/turn-loop.ts';
import { BackendPool } from '../../src/inference/pool/pool.ts';
import { Sampler } from '../../src/inference/sampler.ts';

const tokens = await openFakeTokens();
const qwen3 = await openConversation(qwen3Folder());

/** A tool that repeats a text the given number of times. */
const repeatTool: Tool = {
  spec: { name: 'repeat', description: 'Repeats.', parameters: { type: 'object', properties: {} } },
  run: async ({ text, times }) => ({ kind: 'text', text: String(text).repeat(Number(times)) }),
};

interface RunOptions {
  readonly maxContext?: number;
  readonly faults?: Parameters<typeof scriptedFaults>[0];
  readonly maxTurns?: number;
  readonly maxRepeats?: number;
  readonly onTurn?: AgentOptions['onTurn'];
  readonly tools?: readonly Tool[];
  readonly compact?: AgentOptions['compact'];
  readonly conversation?: Conversation;
}

async function run(policy: Policy, options: RunOptions = {}) {
  const {
    maxContext = 4000,
    faults = [],
    maxTurns = 10,
    tools = [repeatTool],
    compact,
    conversation = qwen3,
    maxRepeats,
    onTurn,
  } = options;
  await using fake = new FakeBackend({ policy, faults: scriptedFaults(faults) }, tokens);
  await fake.listen();
  const pace = new Pace();
  await using pool = new BackendPool({ log: silentLog, pace });
  pool.update([{ id: backendId.parse('a'), url: fake.url, dialect: 'vllm', policyVersion: 0, state: 'up' }]);
  using sampler = new Sampler({ ledger: new Ledger(), pool, sessionId: 'r', delayMs: 1 });
  const tally: AgentTally = { turns: 0, malformedCalls: 0, modelMs: 0, toolMs: 0 };
  const stop = await runTurns({
    messages: [{ role: 'user', content: 'go' }],
    tools,
    sampler,
    conversation,
    sampling: sampling.parse({ max_tokens: 300 }),
    limits: limits.parse({ max_context_tokens: maxContext, max_turns: maxTurns, max_repeated_calls: maxRepeats }),
    tally,
    signal: new AbortController().signal,
    pace,
    clock: systemClock,
    ...definedOf({ compact, onTurn }),
  });
  return { stop, tally, ledger: sampler.ledger, prompts: fake.requests.map(({ promptIds }) => promptIds) };
}

test('a result that does not fit loses its middle, says so, and the agent continues', async () => {
  const { stop, ledger, prompts } = await run(({ turn }) => ({
    text: turn === 0 ? renderCall('repeat', { text: 'line of output\n', times: 5000 }) : 'done',
  }));
  assert.deepEqual(stop, { stopReason: 'completed', answer: 'done' });
  assert.match(ledger.segments.at(-2)?.text ?? '', /line of[\s\S]*\n\[… about \d+ tokens are left out here[\s\S]*of output\n/);
  assert.ok(ledger.length <= 4000);
  assert.ok((prompts[1]?.length ?? 0) > 3500, 'the available room is used');
  assert.deepEqual(prompts[1]?.slice(0, prompts[0]?.length), prompts[0]);
});

test('a rollout without room for a useful result ends as context_overflow', async () => {
  const { stop, ledger } = await run(() => ({ text: renderCall('repeat', { text: 'x ', times: 800 }) }), { maxContext: 1200 });
  assert.equal(stop.stopReason, 'context_overflow');
  assert.ok(ledger.length <= 1200);
});

test('a server whose context is smaller than the limit ends the rollout as context_overflow', async () => {
  const { stop, tally } = await run(() => ({ text: renderCall('repeat', { text: 'x', times: 1 }) }), {
    faults: [undefined, 'context-length'],
  });
  assert.equal(stop.stopReason, 'context_overflow');
  assert.equal(tally.turns, 1);
});

test('a turn full of malformed calls gets a few messages, and all of the calls are counted', async () => {
  const { stop, tally, ledger } = await run(({ turn }) => ({ text: turn === 0 ? '<tool_call>"</tool_call>'.repeat(30) : 'done' }));
  assert.equal(stop.stopReason, 'completed');
  assert.equal(tally.malformedCalls, 30);
  const results = ledger.segments.find(({ kind }) => kind === 'observation')?.messages ?? [];
  assert.equal(results.length, 5);
  assert.match(results.at(-1)?.content ?? '', /26 more calls/);
});

test('reasoning or a call that max_tokens cut ends the rollout as max_tokens, without a retry', async () => {
  for (const begun of ['<think>', '<tool_call>{"name": "repeat", "arguments": {"text": "']) {
    const { stop, tally } = await run(() => ({ text: `${begun}${'on and on '.repeat(300)}` }));
    assert.equal(stop.stopReason, 'max_tokens');
    assert.deepEqual([tally.turns, tally.malformedCalls], [1, 0]);
  }
});

test('without tools nothing is malformed', async () => {
  for (const text of ['<think>so', '<tool_call>"</tool_call>']) {
    const { stop, tally } = await run(() => ({ text }), { tools: [] });
    assert.deepEqual([stop.stopReason, tally.turns, tally.malformedCalls], ['completed', 1, 0]);
  }
});

const repeatOnce = () => ({ text: renderCall('repeat', { text: 'x ', times: 800 }) });

test('a full context continues as a new branch with the messages of the compact hook', async () => {
  const asked: number[] = [];
  const { stop, tally, ledger, prompts } = await run(repeatOnce, {
    maxContext: 1200,
    maxTurns: 6,
    compact: async (messages) => {
      asked.push(messages.length);
      assert.equal(messages.at(-1)?.role, 'tool');
      return [{ role: 'user', content: `go on, for the ${asked.length}th time` }];
    },
  });
  assert.equal(stop.stopReason, 'max_turns');
  assert.equal(tally.turns, 6);
  assert.ok(asked.length > 1);
  const branches = new Set(ledger.segments.map(({ branch = 0 }) => branch));
  assert.deepEqual(
    [...branches],
    Array.from({ length: asked.length + 1 }, (_, branch) => branch),
  );
  const sampled = ledger.segments.filter(({ kind }) => kind === 'sampled');
  assert.equal(sampled.length, 6);
  for (const [turn, prompt] of prompts.entries()) {
    const own = sampled[turn];
    const before = ledger.segments.slice(0, own ? ledger.segments.indexOf(own) : 0);
    const inBranch = before.filter(({ branch }) => branch === own?.branch).flatMap(({ tokenIds }) => [...tokenIds]);
    assert.deepEqual([...prompt], inBranch);
  }
});

test('compacted messages that do not fit, none at all, or a second compaction in one turn end the rollout as context_overflow', async () => {
  const long = [{ role: 'user' as const, content: 'y '.repeat(2000) }];
  for (const messages of [long, undefined]) {
    const { stop, ledger } = await run(repeatOnce, { maxContext: 1200, compact: async () => messages });
    assert.equal(stop.stopReason, 'context_overflow');
    assert.ok(ledger.segments.every(({ branch }) => branch === undefined));
  }
  let asked = 0;
  const faults = [undefined, 'context-length', 'context-length', 'context-length'] as const;
  const compact = async () => [{ role: 'user' as const, content: `again ${asked++}` }];
  const { stop } = await run(() => ({ text: renderCall('repeat', { text: 'x', times: 1 }) }), { faults, compact });
  assert.deepEqual([stop.stopReason, asked], ['context_overflow', 1]);
});

test('a turn that the server cut twice is read as one: a call may start in one part and end in another', async () => {
  const { stop, tally, ledger } = await run(
    ({ turn }) => ({ text: turn === 0 ? `Ünïcödé 😀 ${renderCall('repeat', { text: 'a', times: 3 })}` : 'done' }),
    { faults: ['abort', 'abort'] },
  );
  assert.deepEqual([stop.stopReason, tally.turns, tally.malformedCalls], ['completed', 2, 0]);
  const sampled = ledger.segments.filter(({ kind }) => kind === 'sampled');
  assert.deepEqual(
    sampled.map(({ turn, finish_reason, messages }) => [turn, finish_reason, messages.length]),
    [
      [1, 'abort', 0],
      [1, 'abort', 0],
      [1, 'stop', 1],
      [2, 'stop', 1],
    ],
  );
  assert.equal(sampled[2]?.messages[0]?.content.trim(), 'Ünïcödé 😀');
  assert.deepEqual(sampled[2]?.messages[0]?.tool_calls?.[0]?.arguments, { text: 'a', times: 3 });
  assert.match(ledger.segments.find(({ kind }) => kind === 'observation')?.text ?? '', /aaa/);
});

const think = (turn: number) => {
  const call = renderCall('repeat', { text: `result ${turn} `, times: 2 });
  return `thought ${turn}\n</think>\n\n${turn < 2 ? `step ${turn}\n${call}` : 'done'}`;
};
const thinkThenRepeat: Policy = ({ turn }) => ({ text: `<think>\n${think(turn)}` });

test('the reasoning of a turn is its own field of the message, and the answer is without it', async () => {
  const { stop, ledger } = await run(thinkThenRepeat);
  assert.deepEqual(stop, { stopReason: 'completed', answer: 'done' });
  const said = ledger.segments.flatMap(({ kind, messages }) => (kind === 'sampled' ? messages : []));
  assert.deepEqual(
    said.map(({ content, reasoning }) => [content, reasoning]),
    [
      ['step 0', 'thought 0'],
      ['step 1', 'thought 1'],
      ['done', 'thought 2'],
    ],
  );
});

test('where the template keeps reasoning between tool calls, the ledger only appends', async () => {
  const { ledger, prompts } = await run(thinkThenRepeat);
  assert.ok(ledger.segments.every(({ branch }) => branch === undefined));
  assert.match(tokens.decode([...(prompts[2] ?? [])]), /thought 0[\s\S]*thought 1/);
});

/** ChatML with tools, and the reasoning of every earlier turn dropped, as in the template of QwQ. */
const droppingTemplate = `{%- for message in messages %}
{%- if message.role == 'assistant' %}
{{- '<|im_start|>assistant\n' + message.content.split('</think>')[-1].lstrip('\n') }}
{%- for call in message.tool_calls or [] %}{{- '\n<tool_call>\n' + (call.function | tojson) + '\n</tool_call>' }}{%- endfor %}
{{- '<|im_end|>\n' }}
{%- elif message.role == 'tool' %}{{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}
{%- else %}{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n<think>\n' }}{%- endif %}`;

async function openDropping(reasoning: 'template' | 'keep') {
  await using folder = await makeTempFolder('template');
  const chatTemplate = join(folder.path, 'dropping.jinja');
  await writeFile(chatTemplate, droppingTemplate);
  return await openConversation(qwen3Folder(), { chatTemplate, reasoning, teachTools: false });
}

/** The generation prompt has opened the reasoning. */
const closeThenRepeat: Policy = ({ turn }) => ({ text: think(turn) });

test('where the template drops earlier reasoning, each result starts a branch without it, and what was sampled stays', async () => {
  const { stop, ledger, prompts } = await run(closeThenRepeat, { conversation: await openDropping('template') });
  assert.deepEqual(stop, { stopReason: 'completed', answer: 'done' });
  assert.deepEqual(
    ledger.segments.map(({ kind, branch = 0 }) => `${kind} ${branch}`),
    ['prompt 0', 'sampled 0', 'prompt 1', 'sampled 1', 'prompt 2', 'sampled 2'],
  );
  const texts = prompts.map((prompt) => tokens.decode([...prompt]));
  assert.equal(
    texts[2],
    [
      '<|im_start|>user\ngo<|im_end|>\n',
      '<|im_start|>assistant\nstep 0\n<tool_call>\n{"name": "repeat", "arguments": {"text": "result 0 ", "times": 2}}\n</tool_call><|im_end|>\n',
      '<|im_start|>user\n<tool_response>\nresult 0 result 0 \n</tool_response><|im_end|>\n',
      '<|im_start|>assistant\nstep 1\n<tool_call>\n{"name": "repeat", "arguments": {"text": "result 1 ", "times": 2}}\n</tool_call><|im_end|>\n',
      '<|im_start|>user\n<tool_response>\nresult 1 result 1 \n</tool_response><|im_end|>\n',
      '<|im_start|>assistant\n<think>\n',
    ].join(''),
  );
  const sampled = ledger.segments.filter(({ kind }) => kind === 'sampled').map(({ tokenIds }) => tokens.decode([...tokenIds]));
  assert.match(sampled[0] ?? '', /^thought 0\n<\/think>\n\nstep 0/, 'the tokens are those that were sampled');
  const opening = ledger.segments.filter(({ kind }) => kind === 'prompt').at(-1)?.messages ?? [];
  assert.ok(
    opening.some(({ reasoning }) => reasoning !== undefined),
    'the template is given the reasoning, and drops it',
  );
});

test('with model.reasoning "keep", reasoning stays in the context although the template drops it', async () => {
  const { ledger, prompts } = await run(closeThenRepeat, { conversation: await openDropping('keep') });
  assert.ok(ledger.segments.every(({ branch }) => branch === undefined));
  assert.match(tokens.decode([...(prompts[2] ?? [])]), /thought 0[\s\S]*thought 1/);
});

test('a result that is too long for the branch without reasoning is shortened there', async () => {
  let calls = 0;
  const policy: Policy = () => ({
    text: calls++ === 0 ? `hm\n</think>\n\n${renderCall('repeat', { text: 'line of output\n', times: 5000 })}` : 'so\n</think>\n\ndone',
  });
  const { stop, ledger } = await run(policy, { conversation: await openDropping('template') });
  assert.deepEqual(stop, { stopReason: 'completed', answer: 'done' });
  assert.equal(ledger.segments.at(-1)?.branch, 1);
  assert.match(ledger.segments.at(-2)?.text ?? '', /line of[\s\S]*\n\[… about \d+ tokens are left out here[\s\S]*of output\n/);
  assert.ok(ledger.length <= 4000 && ledger.length > 3500);
});

test('the same calls with the same arguments, so many turns in a row, stop the agent as a loop', async () => {
  const ran: unknown[] = [];
  const tool: Tool = {
    ...repeatTool,
    run: async (args) => {
      ran.push(args);
      return { kind: 'text', text: `${ran.length}` };
    },
  };
  const repeats: number[] = [];
  const say = (turn: number) => renderCall('repeat', turn < 2 ? { b: turn, a: 1 } : turn % 2 === 0 ? { a: 1, b: 9 } : { b: 9, a: 1 });
  const policy: Policy = ({ turn }) => ({ text: say(turn) });
  const onTurn: AgentOptions['onTurn'] = (report) => repeats.push(report.repeats);
  const { stop, tally } = await run(policy, { tools: [tool], maxRepeats: 3, onTurn });
  assert.equal(stop.stopReason, 'loop');
  assert.deepEqual([tally.turns, ran.length], [5, 4], 'the calls that make it a loop are not run');
  assert.deepEqual(repeats, [1, 1, 1, 2, 3]);
});

test('without the limit, or with a turn between them, equal calls are not a loop', async () => {
  const same: Policy = () => ({ text: renderCall('repeat', { text: 'x', times: 1 }) });
  assert.equal((await run(same, { maxTurns: 6 })).stop.stopReason, 'max_turns');
  const changing: Policy = ({ turn }) => ({ text: renderCall('repeat', { text: 'x', times: turn % 2 }) });
  assert.equal((await run(changing, { maxTurns: 6, maxRepeats: 2 })).stop.stopReason, 'max_turns');
});
