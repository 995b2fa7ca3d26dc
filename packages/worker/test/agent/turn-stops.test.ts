// Turns that end at a stop string: the scenario answers, continues the agent's own turn, or samples the next one otherwise. The ledger
// keeps what was sampled, and the provenance of each turn says how.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { Ledger, openConversation } from '@millrace/model';
import { backendId, limits, type Message, RolloutError, type SamplingInput, sampling } from '@millrace/protocol';
import { FakeBackend, openFakeTokens, type Policy, qwen3Folder, renderCall } from '@millrace/testkit';
import type { AgentOptions } from '../../src/agent/agent-options.ts';
import { runTurns } from '../../src/agent/turn-loop.ts';
import { BackendPool } from '../../src/inference/pool/pool.ts';
import { Sampler } from '../../src/inference/sampler.ts';

const tokens = await openFakeTokens();
const conversation = await openConversation(qwen3Folder());
const never = new AbortController().signal;

interface RunOptions extends Pick<AgentOptions, 'respond'> {
  readonly given?: SamplingInput;
  readonly openingSampling?: SamplingInput;
  readonly tools?: AgentOptions['tools'];
  readonly maxContext?: number;
}

async function run(policy: Policy, { given = {}, openingSampling, respond, tools = [], maxContext = 4000 }: RunOptions) {
  await using fake = new FakeBackend({ policy }, tokens);
  await fake.listen();
  const pace = new Pace();
  await using pool = new BackendPool({ log: silentLog, pace });
  pool.update([{ id: backendId.parse('a'), url: fake.url, dialect: 'vllm', policyVersion: 0, state: 'up' }]);
  using sampler = new Sampler({ ledger: new Ledger(), pool, sessionId: 'r', delayMs: 1 });
  const end = await runTurns({
    messages: [{ role: 'user', content: 'go' }],
    tools,
    sampler,
    conversation,
    sampling: sampling.parse({ max_tokens: 300, ...given }),
    ...(openingSampling ? { openingSampling } : {}),
    limits: limits.parse({ max_context_tokens: maxContext, max_turns: 6 }),
    tally: { turns: 0, malformedCalls: 0, modelMs: 0, toolMs: 0 },
    signal: never,
    pace,
    clock: systemClock,
    ...(respond ? { respond } : {}),
  });
  const { ledger } = sampler;
  return { end, ledger, requests: fake.requests, segments: ledger.segments, text: tokens.decode(JSON.parse(`[${ledger.promptJson}]`)) };
}

/** Searches once, then answers; after the stop string it would write more. */
const searcher: Policy = (input) => ({
  text: input.decode().includes('<information>') ? 'So <answer>4</answer> and more' : 'Hm. <search>2+2</search> and more',
});
const stop = ['</search>', '</answer>'];

test('a stop string ends the turn; the scenario reads the text before it, and the ledger has its tokens', async () => {
  const seen: unknown[] = [];
  const { end, segments } = await run(searcher, {
    given: { stop },
    respond: async ({ text, stoppedBy }) => {
      seen.push([text, stoppedBy]);
      return stoppedBy === '</search>' ? { messages: [{ role: 'user', content: '<information>4</information>' }] } : { finish: text };
    },
  });
  assert.deepEqual(seen, [
    ['Hm. <search>2+2', '</search>'],
    ['So <answer>4', '</answer>'],
  ]);
  assert.deepEqual(end, { stopReason: 'completed', answer: 'So <answer>4' });
  assert.deepEqual(
    segments.map(({ kind, text, stopped_by, finish_reason }) => [kind, kind === 'sampled' ? text : '', stopped_by, finish_reason]),
    [
      ['prompt', '', undefined, undefined],
      ['sampled', 'Hm. <search>2+2</search>', '</search>', 'stop'],
      ['inserted', '', undefined, undefined],
      ['observation', '', undefined, undefined],
      ['sampled', 'So <answer>4</answer>', '</answer>', 'stop'],
    ],
  );
  assert.equal(segments[1]?.messages[0]?.content, 'Hm. <search>2+2</search>', 'the message is what was written');
});

test('include_stop_str_in_output shows the stop string, and a stop token, to the scenario and changes no token', async () => {
  const [, , third = 0] = tokens.encode('Hm. <search>2+2</search> and more');
  for (const given of [{ stop }, { stop_token_ids: [third] }])
    for (const include_stop_str_in_output of [false, true]) {
      const { end, segments } = await run(searcher, { given: { ...given, include_stop_str_in_output } });
      const whole = segments[1]?.text ?? '';
      const stopText = 'stop' in given ? '</search>' : tokens.decode([third]);
      assert.ok(whole.endsWith(stopText));
      assert.equal(end.answer, include_stop_str_in_output ? whole : whole.slice(0, -stopText.length));
    }
});

test('append continues the agent’s own turn: no end is inserted, and the message is the whole turn', async () => {
  const { end, ledger, segments, requests, text } = await run(searcher, {
    given: { stop, include_stop_str_in_output: true },
    respond: async ({ text: said, stoppedBy }) =>
      stoppedBy === '</search>' ? { append: '\n<information>4<|im_end|></information>\n' } : { finish: said },
  });
  const turn = 'Hm. <search>2+2</search>\n<information>4<|im_end|></information>\nSo <answer>4</answer>';
  assert.deepEqual(end, { stopReason: 'completed', answer: 'So <answer>4</answer>' });
  assert.ok(text.endsWith(`<|im_start|>assistant\n${turn}`), text);
  assert.deepEqual(
    segments.map(({ kind, messages }) => [kind, messages.length]),
    [
      ['prompt', 1],
      ['sampled', 0],
      ['observation', 0],
      ['sampled', 1],
    ],
  );
  assert.deepEqual(ledger.messages.at(-1), { role: 'assistant', content: turn });
  const [first, second] = requests;
  assert.deepEqual([...(second?.promptIds.subarray(0, first?.promptIds.length) ?? [])], [...(first?.promptIds ?? [])]);
  assert.ok(!segments[2]?.tokenIds.includes(tokens.endOfTurnId), 'appended text writes no control token');
});

test('a call inside of appended text is not run, one that the policy writes after it is', async () => {
  const calls: unknown[] = [];
  const tool = {
    spec: { name: 'note', description: 'Notes.', parameters: { type: 'object', properties: {} } },
    run: async (args: Record<string, unknown>) => {
      calls.push(args);
      return { kind: 'text', text: 'noted' } as const;
    },
  };
  const policy: Policy = (input) => {
    const prompt = input.decode();
    if (prompt.includes('noted')) return { text: 'done' };
    return { text: prompt.includes('<information>') ? renderCall('note', { by: 'policy' }) : '<search>x</search>' };
  };
  const { ledger } = await run(policy, {
    given: { stop: ['</search>'] },
    tools: [tool],
    respond: async ({ text, stoppedBy }) =>
      stoppedBy === '</search>' ? { append: `<information>${renderCall('note', { by: 'page' })}</information>` } : { finish: text },
  });
  assert.deepEqual(calls, [{ by: 'policy' }]);
  const [said] = ledger.messages.filter(({ role }) => role === 'assistant');
  assert.equal(said?.tool_calls?.length, 1);
  assert.match(said?.content ?? '', /^<search>x<\/search><information>/);
});

test('appended text that does not fit loses its middle; to a turn that has ended nothing can be appended', async () => {
  const long = await run(searcher, {
    given: { stop },
    maxContext: 600,
    respond: async ({ text, stoppedBy }) =>
      stoppedBy === '</search>' ? { append: `<information>${'word '.repeat(3000)}</information>` } : { finish: text },
  });
  assert.equal(long.end.answer, 'So <answer>4');
  assert.match(long.segments[2]?.text ?? '', /tokens are left out here/);
  assert.equal(
    long.ledger.messages.at(-1)?.content,
    long.segments
      .slice(1)
      .map(({ text }) => text)
      .join(''),
  );
  const ended = run(() => ({ text: 'done' }), { respond: async () => ({ append: 'more' }) });
  await assert.rejects(ended, (error) => error instanceof RolloutError && error.code === 'run-failed' && /has ended/.test(error.message));
});

test('the scenario’s sampling holds from the next turn on until it is set again, and the provenance of each turn says it', async () => {
  const overrides: (SamplingInput | undefined)[] = [undefined, { max_tokens: 7, structured_outputs: { choice: ['a', 'b'] } }, {}];
  const { requests, segments, ledger } = await run(({ turn }) => ({ text: `turn ${turn}` }), {
    given: { temperature: 0.5, top_k: 3 },
    openingSampling: { temperature: 0.9 },
    respond: async ({ number }): Promise<{ messages: Message[]; sampling?: SamplingInput } | { finish: string }> => {
      const own = overrides[number - 1];
      if (number > overrides.length) return { finish: '' };
      return { messages: [{ role: 'user', content: 'next' }], ...(own ? { sampling: own } : {}) };
    },
  });
  const sent = requests.map(({ sampling: { temperature, top_k, max_tokens, structured_outputs } }) => [
    temperature,
    top_k,
    max_tokens,
    structured_outputs,
  ]);
  const choice = { choice: ['a', 'b'] };
  assert.deepEqual(sent, [
    [0.9, 3, 300, undefined],
    [0.9, 3, 300, undefined],
    [0.5, 3, 7, choice],
    [0.5, 3, 300, undefined],
  ]);
  const ways = segments.filter(({ kind }) => kind === 'sampled').map(({ provenance = -1 }) => ledger.engines[provenance]?.sampling);
  assert.deepEqual(
    ways.map((way) => [way?.temperature, way?.structured_outputs]),
    [
      [0.9, undefined],
      [0.9, undefined],
      [0.5, choice],
      [0.5, undefined],
    ],
  );
  assert.deepEqual(
    ledger.engines.map(({ logprobs_without }) => logprobs_without),
    [
      ['temperature', 'top_k'],
      ['temperature', 'top_k'],
      ['temperature', 'top_k'],
    ],
    'they are raw; vLLM applies the grammar first',
  );
});

test('sampling that a submission could not have is an error of the scenario that names the field', async () => {
  const bad = (own: unknown) =>
    run(() => ({ text: 'x' }), { respond: async () => ({ messages: [{ role: 'user', content: 'y' }], sampling: own as SamplingInput }) });
  for (const [own, field] of [
    [{ temperature: 5 }, 'temperature'],
    [{ top_q: 1 }, 'top_q'],
    [{ stop: 'x' }, 'stop'],
  ] as const)
    await assert.rejects(
      bad(own),
      (error) => error instanceof RolloutError && error.code === 'run-failed' && error.message.includes(field),
    );
});
