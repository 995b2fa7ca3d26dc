// Rollouts with tools on a real engine. Its small model calls no tool by itself, so a regular expression makes every turn a call. Every
// prompt and every sampled id is compared with what was on the wire, and every logprob with an independent score of the same ids.
// MILLRACE_FORCED_ROLLOUTS says how many on each route.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Trajectory } from '@millrace/protocol';
import { TestService } from '@millrace/testkit';
import { z } from 'zod';
import type { Engine } from '../engines/engine-process.ts';
import { askPython } from '../engines/python-packages.ts';
import { openSharedVllm } from '../engines/shared-engines.ts';
import { skipWithoutVllm } from '../engines/vllm.ts';
import { modelFolder, modelName, vllmPython } from '../engines/world-cache.ts';
import { WireTap } from './forced/wire-tap.ts';

const rollouts = Number(process.env.MILLRACE_FORCED_ROLLOUTS ?? 60);
const turns = 4;
const temperature = 0.8;
const regex = '<tool_call>\\n\\{"name": "bash", "arguments": \\{"command": "echo [a-z]{2,9} [a-z]{2,9}"\\}\\}\\n</tool_call>';
/** float32 on both sides: only the order of additions differs. */
const noise = 1e-3;

describe('tool calls on a real vLLM', { skip: skipWithoutVllm(), timeout: 3_600_000 }, () => {
  let engine: Engine;
  before(async () => {
    engine = await openSharedVllm();
  });
  after(() => engine?.[Symbol.asyncDispose]());

  for (const dialect of ['vllm', 'vllm-completions'] as const)
    test(`${dialect}: ids are those on the wire, and logprobs those of the masked distribution, over ${turns} turns with calls`, async (context) => {
      await using tap = await WireTap.open(engine.url);
      const trajectories = await runForced(tap.url, dialect);
      const wire = new Set(tap.calls.map(({ promptIds, sampledIds }) => `${promptIds.join()}:${sampledIds.join()}`));
      for (const trajectory of trajectories)
        for (const { start, ids, length } of turnsOf(trajectory)) {
          const recorded = `${ids.slice(0, start).join()}:${ids.slice(start, start + length).join()}`;
          assert.ok(wire.has(recorded), `${trajectory.rolloutId}: a turn at token ${start} was not on the wire`);
        }
      const { tokens, largest, mean } = await rescore(trajectories);
      context.diagnostic(
        `${trajectories.length} rollouts, ${turns} turns each, ${tokens} tokens: mean difference ${mean.toExponential(1)}, largest ${largest.toExponential(1)}`,
      );
      assert.ok(largest < noise, `largest difference ${largest}`);
    });
});

async function runForced(url: string, dialect: 'vllm' | 'vllm-completions'): Promise<Trajectory[]> {
  await using service = await TestService.open({ workers: 1, tokenizer: modelFolder(), pipeline: { runSlots: 16 } });
  const { client } = service;
  await client.backends.join({ id: 'real', url, dialect, model: modelName, logprobs_mode: 'processed' });
  const task = { instruction: 'Echo some words.', check: 'true' };
  const sampling = { temperature, max_tokens: 64, structured_outputs: { regex } };
  const limits = { max_turns: turns, max_context_tokens: 1800 };
  const submissions = Array.from({ length: rollouts }, (_, i) => ({ id: `forced-${i}`, scenario: 'shell', task, sampling, limits }));
  const ids = (await client.submit(submissions)).map(({ id }) => id);
  const views = await Array.fromAsync(client.results(ids));
  const failed = views.filter(({ state }) => state !== 'done').map(({ id, failure }) => `${id}: ${failure?.message}`);
  assert.deepEqual(failed, []);
  const trajectories = await Promise.all(ids.map((id) => client.trajectory(id)));
  for (const trajectory of trajectories) checkCalls(trajectory);
  return trajectories;
}

/** Each turn is a call, and each but the last is followed by what its command printed. */
function checkCalls({ rolloutId, segments }: Trajectory): void {
  const said = segments.filter(({ kind }) => kind === 'sampled');
  assert.equal(said.length, turns, rolloutId);
  const words = said.map(({ messages }) => `${messages[0]?.tool_calls?.[0]?.arguments.command}`.replace('echo ', ''));
  const seen = segments.filter(({ kind }) => kind === 'observation').map(({ text }) => text);
  for (const [at, text] of seen.entries()) assert.ok(text.includes(words[at] ?? 'nothing'), `${rolloutId}: ${text} after ${words[at]}`);
  assert.ok(seen.length >= turns - 1, rolloutId);
}

function turnsOf({ segments }: Trajectory) {
  const ids = segments.flatMap(({ tokenIds }) => [...tokenIds]);
  let at = 0;
  return segments.flatMap(({ kind, tokenIds, logprobs }) => {
    const start = at;
    at += tokenIds.length;
    return kind === 'sampled' ? [{ ids, start, length: tokenIds.length, logprobs }] : [];
  });
}

async function rescore(trajectories: readonly Trajectory[]) {
  const asked = trajectories.map((trajectory) => {
    const all = turnsOf(trajectory);
    return { ids: all[0]?.ids ?? [], turns: all.map(({ start, length }) => ({ start, length, temperature, regex })) };
  });
  const script = join(import.meta.dirname, 'forced/score_structured.py');
  const answer = await askPython(vllmPython(), script, { model: modelFolder(), rollouts: asked });
  const scores = z.array(z.array(z.array(z.number()))).parse(answer);
  const differences = trajectories.flatMap((trajectory, i) =>
    turnsOf(trajectory).flatMap(({ logprobs }, turn) =>
      [...logprobs].map((value, at) => Math.abs(value - (scores[i]?.[turn]?.[at] ?? Number.NaN))),
    ),
  );
  const mean = differences.reduce((sum, one) => sum + one, 0) / differences.length;
  return { tokens: differences.length, largest: Math.max(...differences), mean };
}
