// A real harness with a real engine and a real model: what the model says is its own, and every prompt, token and logprob of the trajectory
// is one that passed between the service and the engine.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { probeBubblewrap } from '@millrace/sandbox';
import { TestService } from '@millrace/testkit';
import { z } from 'zod';
import { skipWithoutLlama } from '../engines/llama.ts';
import { openSharedLlama } from '../engines/shared-engines.ts';
import { modelFolder, worldCacheFolder } from '../engines/world-cache.ts';

const probe = await probeBubblewrap();
const report = z.looseObject({ exact_share: z.number(), branches: z.array(z.unknown()) });
const asked = z.looseObject({ prompt: z.array(z.int()) });
const said = z.looseObject({
  tokens: z.array(z.int()),
  completion_probabilities: z.array(z.looseObject({ id: z.int(), logprob: z.number() })),
});

interface Exchange {
  readonly prompt: readonly number[];
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
}

/** Passes requests on, and keeps those that sample. */
async function openWitness(engineUrl: string) {
  const seen: Exchange[] = [];
  const server = createServer(async (request, reply) => {
    const body = await text(request);
    const isPost = request.method === 'POST';
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${engineUrl}${request.url}`, isPost ? { method: 'POST', headers, body } : {});
    const answered = await answer.text();
    if (request.url === '/completion' && answer.ok) {
      const { tokens, completion_probabilities: entries } = said.parse(JSON.parse(answered));
      seen.push({ prompt: asked.parse(JSON.parse(body)).prompt, tokens, logprobs: entries.map(({ logprob }) => logprob) });
    }
    reply.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'application/json' }).end(answered);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    seen,
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

test('mini-swe-agent with SmolLM2 on llama-server: several turns, each token as the engine sampled it', {
  skip: probe.ok ? skipWithoutLlama() : `${probe.reason}; try: ${probe.remedy}`,
  timeout: 600_000,
}, async (context) => {
  await using engine = await openSharedLlama();
  await using witness = await openWitness(engine.url);
  const run = join(worldCacheFolder(), 'harnesses');
  await using service = await TestService.open({ workers: 1, tokenizer: modelFolder(), run });
  await service.client.backends.join({ url: witness.url, dialect: 'llamacpp' });
  const [accepted] = await service.client.submit([
    {
      scenario: 'shell',
      agent: 'mini-swe-agent',
      task: { instruction: 'Write hello into hello.txt.', check: 'true' },
      sampling: { max_tokens: 16, seed: 1 },
      limits: { max_context_tokens: 2048, max_turns: 2, run_timeout_s: 300 },
    },
  ]);
  const view = await service.client.wait(accepted?.id ?? '');
  assert.deepEqual([view.state, view.reward], ['done', 1], JSON.stringify([view.failure, view.result]));
  assert.ok((view.result?.turns ?? 0) >= 2, JSON.stringify(view.result));
  assert.equal(report.parse(view.result?.score.harness).exact_share, 1);
  const { segments } = await service.client.trajectory(view.id);
  const sampled: number[] = [];
  let [ids, line]: [number[], number] = [[], 0];
  for (const { kind, tokenIds, logprobs, branch = 0 } of segments) {
    if (branch !== line) [ids, line] = [[], branch]; // the harness drops a reply without a call, which begins a branch
    if (kind === 'sampled') {
      const own = witness.seen.find(({ prompt }) => prompt.join() === ids.join());
      assert.ok(own, `no request had the ${ids.length} tokens before a sampled turn`);
      assert.deepEqual([...tokenIds], own.tokens.slice(0, tokenIds.length));
      assert.deepEqual([...logprobs], [...Float32Array.from(own.logprobs.slice(0, tokenIds.length))]);
      sampled.push(...tokenIds);
    }
    ids.push(...tokenIds);
  }
  context.diagnostic(`${view.result?.turns} turns, ${sampled.length} sampled tokens`);
  assert.ok(sampled.length > 20, `${sampled.length} tokens`);
});
