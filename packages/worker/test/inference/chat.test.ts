// A chat-only server with the service's own template: its trajectories are exact, and one whose prompt differs is refused.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import { test } from 'node:test';
import { systemClock } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { Pace } from '@millrace/base/pace';
import { Ledger, openConversation } from '@millrace/model';
import { backendId, limits, type Message, RolloutError, sampling } from '@millrace/protocol';
import { thinkTool } from '@millrace/scenarios';
import { openFakeTokens, qwen3Folder, renderCall } from '@millrace/testkit';
import type { AgentTally } from '../../src/agent/agent-options.ts';
import { runTurns } from '../../src/agent/turn-loop.ts';
import { BackendPool } from '../../src/inference/pool/pool.ts';
import { probeServer } from '../../src/inference/pool/server-probe.ts';
import { Sampler } from '../../src/inference/sampler.ts';

const tokens = await openFakeTokens();
const conversation = await openConversation(qwen3Folder());
const pace = new Pace();

/** As the template writes a call; a model that was trained with it writes it in the same way. */
const canonicalCall = '<tool_call>\n{"name": "think", "arguments": {"thought": "one and one"}}\n</tool_call>';

type Kind = 'vllm' | 'nemo-gym' | 'without-ids' | 'other-template';

/** Renders messages as vLLM does, and says the next of these turns. */
async function openChatServer(kind: Kind, turns: readonly string[]) {
  const bodies: Record<string, unknown>[] = [];
  const server = createServer(async (request, response) => {
    if (request.url !== '/v1/chat/completions' || request.method !== 'POST')
      return void response.writeHead(request.url === '/v1/chat/completions' ? 405 : 404).end('{}');
    // biome-ignore lint/suspicious/noExplicitAny: a request of our own
    const body = (await readJson(request)) as any;
    if (!body.messages) return void response.writeHead(422).end('{}');
    bodies.push(body);
    const messages: Message[] = body.messages.map(({ tool_calls, ...message }: Record<string, unknown>) => ({
      ...message,
      ...(Array.isArray(tool_calls)
        ? { tool_calls: tool_calls.map(({ id, function: f }) => ({ id, name: f.name, arguments: JSON.parse(f.arguments) })) }
        : {}),
    }));
    const given = kind === 'other-template' ? [{ role: 'system' as const, content: 'Be brief.' }, ...messages] : messages;
    const specs = (body.tools ?? []).map(({ function: spec }: { function: unknown }) => spec);
    const { tokenIds } = await pace.run(conversation.openingSteps(given, specs));
    const said = turns[Math.min(bodies.length, turns.length) - 1] ?? '';
    const sampled = [...tokens.encode(said), tokens.endOfTurnId];
    const logprobs = sampled.map((_, at) => -at / 8);
    const prompt = [...tokenIds];
    const extra = { prompt_token_ids: prompt, generation_token_ids: sampled, generation_log_probs: logprobs };
    const message = { role: 'assistant', content: said, ...(kind === 'nemo-gym' ? extra : {}) };
    const plain = { index: 0, message, finish_reason: 'stop', logprobs: { content: logprobs.map((logprob) => ({ logprob })) } };
    const hasIds = kind === 'vllm' || kind === 'other-template';
    const reply = hasIds ? { prompt_token_ids: prompt, choices: [{ ...plain, token_ids: sampled }] } : { choices: [plain] };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()).closeAllConnections());
  return { url, bodies, [Symbol.asyncDispose]: close };
}

async function run(kind: Kind, call = canonicalCall) {
  const turns = [call, 'It is 2.'];
  await using server = await openChatServer(kind, turns);
  await using pool = new BackendPool({ log: silentLog, pace });
  pool.update([{ id: backendId.parse('a'), url: server.url, dialect: 'chat', policyVersion: 0, state: 'up' }]);
  using sampler = new Sampler({ ledger: new Ledger(), pool, sessionId: 'r', delayMs: 1, attempts: 1 });
  const tally: AgentTally = { turns: 0, malformedCalls: 0, modelMs: 0, toolMs: 0 };
  const signal = new AbortController().signal;
  const rest = { sampling: sampling.parse({}), limits: limits.parse({}), tally, signal, pace, clock: systemClock };
  const messages: Message[] = [{ role: 'user', content: 'What is 1 + 1?' }];
  const stop = await runTurns({ messages, tools: [thinkTool], sampler, conversation, ...rest });
  return { stop, ledger: sampler.ledger, bodies: server.bodies };
}

for (const kind of ['vllm', 'nemo-gym'] as const) {
  test(`two turns over the chat route of ${kind} give the ids that the server saw and sampled`, async () => {
    const { stop, ledger, bodies } = await run(kind);
    assert.deepEqual(stop, { stopReason: 'completed', answer: 'It is 2.' });
    const sampled = ledger.segments.filter((segment) => segment.kind === 'sampled');
    assert.deepEqual([...(sampled[1]?.tokenIds ?? [])], [...tokens.encode('It is 2.'), tokens.endOfTurnId]);
    assert.equal(sampled[1]?.logprobs[1], -1 / 8);
    assert.deepEqual([bodies[0]?.return_token_ids, bodies[0]?.tool_choice], [true, 'none']);
  });
}

test('a server that renders another prompt is refused with the first token that differs', async () => {
  await assert.rejects(run('other-template'), (error) => {
    assert.ok(error instanceof RolloutError && error.code === 'backend-refused');
    return /rendered another prompt than the service: from token \d+ on \[/.test(error.message);
  });
});

test('a turn that the template writes in another way than the model is refused: nothing is tokenised again', async () => {
  const compact = renderCall('think', { thought: 'one and one' });
  await assert.rejects(run('vllm', compact), /rendered another prompt than the service/);
});

test('a server that returns no ids is refused with what would return them', async () => {
  await assert.rejects(run('without-ids'), /the chat route returned no token ids \(a choice has .*index\): .*return_token_ids/);
});

test('a server with nothing but a chat route joins and counts as healthy', async () => {
  await using server = await openChatServer('vllm', ['x']);
  const options = { clock: systemClock, signal: new AbortController().signal };
  const probe = await probeServer({ url: server.url, dialect: 'chat' }, options);
  assert.equal(probe.tokenizer, 'unchecked');
  await assert.rejects(probeServer({ url: server.url, dialect: 'vllm' }, options), /answered 404/);
});
