// A real vLLM that is restarted while it is idle, with another --logprobs-mode on the same port: every rollout records the mode and the server
// that sampled it, and the engine that it names gives the same logprobs again.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Trajectory } from '@millrace/protocol';
import { readPastEvents, TestService } from '@millrace/testkit';
import { z } from 'zod';
import type { Engine } from '../engines/engine-process.ts';
import { openVllm, skipWithoutVllm } from '../engines/vllm.ts';
import { modelFolder, modelName, vllmVersion } from '../engines/world-cache.ts';
import { makeMath } from '../suite/real-service.ts';

const temperature = 0.5;
/** float32 and the same engine: only the order of additions differs. */
const tolerance = 1e-3;
const rollouts = 2;

describe('a restarted vLLM', { skip: skipWithoutVllm(), timeout: 1_800_000 }, () => {
  test('rollouts before and after name the mode of the server that sampled them', async (context) => {
    await using service = await TestService.open({ workers: 1, tokenizer: modelFolder() });
    const { client } = service;
    const sampleAll = async (name: string) => {
      const ids = Array.from({ length: rollouts }, (_, i) => `${name}-${i}`);
      await client.submit(ids.map((id, i) => makeMath(id, { a: i, sampling: { temperature, max_tokens: 12, seed: i } })));
      const views = await Promise.all(ids.map((id) => client.wait(id, { signal: AbortSignal.timeout(600_000) })));
      for (const { state, failure } of views) assert.equal(state, 'done', failure?.message);
      return await Array.fromAsync(ids, (id) => client.trajectory(id));
    };
    const first = await openVllm({ rawLogprobs: true });
    const { port } = new URL(first.url);
    let before: Trajectory[];
    try {
      await client.backends.join({ id: 'real', url: first.url, model: modelName });
      before = await sampleAll('before');
      context.diagnostic(await check(first, before, { logprobs_mode: 'raw', generation: 1 }));
    } finally {
      await first[Symbol.asyncDispose]();
    }
    await using second = await openVllm({ port: Number(port) });
    const after = await sampleAll('after');
    context.diagnostic(await check(second, after, { logprobs_mode: 'processed', generation: 2 }));
    assert.ok((await compare(second, before)).largest > 100 * tolerance, 'the two modes differ, so a wrong one would have shown');
    const changes = await readChanges(service);
    assert.deepEqual(changes, [['raw', 'processed']]);
  });
});

async function check(engine: Engine, trajectories: readonly Trajectory[], expected: Readonly<Record<string, unknown>>): Promise<string> {
  for (const { provenances = [] } of trajectories) {
    const named = provenances.map(({ engine, engine_version, engine_model, logprobs_mode, generation }) => {
      return { engine, engine_version, engine_model, logprobs_mode, generation };
    });
    assert.deepEqual(named, [{ engine: 'vllm', engine_version: vllmVersion, engine_model: modelName, ...expected }]);
  }
  const { tokens, largest } = await compare(engine, trajectories);
  assert.ok(tokens >= 10 && largest < tolerance, `${tokens} tokens, largest difference ${largest}`);
  return `${tokens} tokens in mode ${expected.logprobs_mode}: largest difference ${largest}`;
}

const likeliest = z.looseObject({
  choices: z.tuple([z.looseObject({ logprobs: z.looseObject({ top_logprobs: z.tuple([z.record(z.string(), z.number())]) }) })]),
});

/** What the engine says, in its own mode and at the same temperature, of each recorded token that is among the likeliest. */
async function compare({ url }: Engine, trajectories: readonly Trajectory[]): Promise<{ tokens: number; largest: number }> {
  const found = { tokens: 0, largest: 0 };
  for (const { segments } of trajectories) {
    const ids: number[] = [];
    for (const { kind, tokenIds, logprobs } of segments) {
      for (const [i, id] of tokenIds.entries()) {
        const score = kind === 'sampled' ? await scoreNext(url, ids, id) : undefined;
        if (score !== undefined) {
          found.tokens += 1;
          found.largest = Math.max(found.largest, Math.abs(score - (logprobs[i] ?? Number.POSITIVE_INFINITY)));
        }
        ids.push(id);
      }
    }
  }
  return found;
}

async function scoreNext(url: string, prompt: readonly number[], id: number): Promise<number | undefined> {
  const body = { model: modelName, prompt, max_tokens: 1, temperature, logprobs: 20, return_tokens_as_token_ids: true };
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${url}/v1/completions`, { method: 'POST', headers, body: JSON.stringify(body) });
  return likeliest.parse(await answer.json()).choices[0].logprobs.top_logprobs[0][`token_id:${id}`];
}

/** The modes before and after each change that the event log has. */
async function readChanges({ client }: TestService): Promise<unknown[]> {
  const facts = z.looseObject({ logprobs_mode: z.string() });
  const changes = await readPastEvents(client, 'backend-changed');
  return changes.map(({ data }) => [facts.parse(data.from).logprobs_mode, facts.parse(data.to).logprobs_mode]);
}
