// A real vLLM with two data-parallel ranks and two LoRA adapters by name, behind one service: which rank each turn was sent to, and the weights
// that each recorded logprob is of. MILLRACE_RANKS=1 leaves the second rank out.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import type { Trajectory } from '@millrace/protocol';
import { makeTempFolder, TestService } from '@millrace/testkit';
import { openVllm, skipWithoutVllm } from '../engines/vllm.ts';
import { modelFolder, modelName, vllmPython } from '../engines/world-cache.ts';
import { scoreWithVllm } from '../suite/ask.ts';
import { WireTap } from './forced/wire-tap.ts';

const ranks = Number(process.env.MILLRACE_RANKS ?? 2);
const adapters = ['step-1', 'step-2'];
const rolloutsEach = 8;
/** float32 and the same engine: only the order of additions differs. */
const noise = 1e-3;

test('a rollout keeps its rank over its turns, all ranks sample, and every logprob is of the adapter that the segment names', {
  skip: skipWithoutVllm(),
  timeout: 1_800_000,
}, async (context) => {
  await using folder = await makeTempFolder('ranks');
  const make = join(import.meta.dirname, '../engines/make-lora.py');
  for (const [seed, name] of adapters.entries())
    await promisify(execFile)(vllmPython(), [make, modelFolder(), join(folder.path, name), `${seed + 1}`]);
  const lora = ['--enable-lora', '--max-lora-rank', '8', '--max-loras', '2'];
  const modules = adapters.map((name) => `${name}=${join(folder.path, name)}`);
  const args = [...lora, '--lora-modules', ...modules, ...(ranks > 1 ? ['--data-parallel-size', `${ranks}`] : [])];
  await using engine = await openVllm({ scaleOut: true, args });
  await using tap = await WireTap.open(engine.url);
  const scenarios = [join(import.meta.dirname, 'ranks/chat.ts')];
  await using service = await TestService.open({ workers: 1, tokenizer: modelFolder(), scenarios, pipeline: { runSlots: 8 } });
  const { client } = service;
  await client.backends.join({ id: 'real', url: tap.url, dialect: 'vllm', model: modelName, logprobs_mode: 'processed' });
  const seen: Record<string, number> = {};
  let compared = 0;
  for (const [version, adapter] of [undefined, ...adapters].entries()) {
    if (adapter !== undefined) {
      await client.policy.pause();
      await client.policy.resume({ policy_version: version, adapter });
    }
    for (const trajectory of await sample(client, adapter)) {
      const rank = findRank(trajectory, tap, adapter);
      seen[rank] = (seen[rank] ?? 0) + 1;
      compared += await compareLogprobs(trajectory, engine, adapter);
    }
  }
  context.diagnostic(`${compared} tokens compared; rollouts by rank: ${JSON.stringify(seen)}`);
  assert.equal(Object.keys(seen).length, ranks);
});

async function sample(client: TestService['client'], adapter: string | undefined): Promise<Trajectory[]> {
  const submissions = Array.from({ length: rolloutsEach }, (_, i) => ({
    ...{ id: `${adapter ?? 'base'}-${i}`, scenario: 'chat', task: {}, sampling: { max_tokens: 16 }, limits: { max_context_tokens: 1800 } },
  }));
  const views = await Array.fromAsync(client.results((await client.submit(submissions)).map(({ id }) => id)));
  const failed = views.filter(({ state }) => state !== 'done').map(({ failure }) => failure?.message);
  assert.deepEqual(failed, []);
  return await Promise.all(views.map(({ id }) => client.trajectory(id)));
}

/** The rank that every turn was sent to, under the name of the weights that sample. */
function findRank(trajectory: Trajectory, tap: WireTap, adapter: string | undefined): string {
  const turns = turnsOf(trajectory);
  assert.equal(turns.length, 3, trajectory.rolloutId);
  const sent = turns.map(({ prompt, sampled }) => {
    const call = tap.calls.find(({ promptIds, sampledIds }) => promptIds.join() === prompt.join() && sampledIds.join() === sampled.join());
    return { rank: call?.rank, model: call?.model };
  });
  const rank = sent[0]?.rank;
  const wanted = { rank, model: adapter ?? modelName };
  assert.deepEqual(sent, [wanted, wanted, wanted], trajectory.rolloutId);
  return `${rank}`;
}

async function compareLogprobs(trajectory: Trajectory, engine: { readonly url: string }, adapter: string | undefined): Promise<number> {
  const turns = turnsOf(trajectory);
  const scores = await scoreWithVllm(engine, turns.at(-1)?.whole ?? [], adapter);
  for (const { prompt, logprobs, adapter: named } of turns) {
    assert.equal(named, adapter, trajectory.rolloutId);
    for (const [i, logprob] of logprobs.entries()) {
      const score = scores[prompt.length + i] ?? Number.NaN;
      assert.ok(Math.abs(logprob - score) < noise, `${trajectory.rolloutId}: ${logprob} was recorded, and ${score} scored`);
    }
  }
  return turns.reduce((sum, { logprobs }) => sum + logprobs.length, 0);
}

function turnsOf({ segments }: Trajectory) {
  const all: number[] = [];
  return segments.flatMap(({ kind, tokenIds, logprobs, adapter }) => {
    const prompt = [...all];
    all.push(...tokenIds);
    return kind === 'sampled' ? [{ prompt, sampled: [...tokenIds], whole: [...all], logprobs: [...logprobs], adapter }] : [];
  });
}
