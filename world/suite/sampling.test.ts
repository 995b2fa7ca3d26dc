// The sampling fields on real engines, on every token route: a stop string ends a turn after its own tokens, a minimum, a bias and a
// structure change what is sampled, or are refused.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Backend, Generation } from '@millrace/engines';
import { type Dialect, RolloutError, type SamplingInput, sampling } from '@millrace/protocol';
import type { Engine } from '../engines/engine-process.ts';
import { skipWithoutLlama } from '../engines/llama.ts';
import { openSharedLlama, openSharedVllm } from '../engines/shared-engines.ts';
import { skipWithoutVllm } from '../engines/vllm.ts';
import { endOfTurnId, makeRequest, openEngineBackend } from './ask.ts';

const sameEngine = 1e-3;
const ask = (backend: Backend, given: SamplingInput, maxTokens = 16): Promise<Generation> =>
  backend.generate(makeRequest({ sampling: sampling.parse({ temperature: 0, ...given }), maxTokens }));

/** The text of ids, as vLLM writes it. */
async function textOf({ url }: Pick<Engine, 'url'>, tokenIds: Iterable<number>): Promise<string> {
  const body = JSON.stringify({ tokens: [...tokenIds] });
  const reply = await fetch(`${url}/detokenize`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const { prompt, content } = (await reply.json()) as { prompt?: string; content?: string };
  return prompt ?? content ?? '';
}

const json = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'], additionalProperties: false };

for (const dialect of ['vllm', 'vllm-completions', 'llamacpp'] as const)
  describe(`sampling fields: ${dialect}`, { skip: dialect === 'llamacpp' ? skipWithoutLlama() : skipWithoutVllm() }, () => {
    let engine: Engine;
    let backend: Backend;
    before(async () => {
      engine = await (dialect === 'llamacpp' ? openSharedLlama() : openSharedVllm());
      backend = openEngineBackend(engine, dialect);
    });
    after(() => engine?.[Symbol.asyncDispose]());
    defineStops(() => ({ engine, backend }));
    defineShapes(dialect, () => ({ engine, backend }));
  });

type Bed = () => { readonly engine: Engine; readonly backend: Backend };

function defineStops(bed: Bed): void {
  test('a stop string ends the turn after the token that completes it, with the tokens and logprobs of the turn without it', async () => {
    const { engine, backend } = bed();
    const whole = await ask(backend, {});
    const text = await textOf(engine, whole.tokenIds);
    const [stop = ''] = / answer .s/.exec(text) ?? [];
    assert.notEqual(stop, '', text);
    const stopped = await ask(backend, { stop: ['never written', stop] });
    assert.deepEqual([stopped.finishReason, stopped.stoppedBy], ['stop', stop]);
    const { length } = stopped.tokenIds;
    assert.ok(length < whole.tokenIds.length);
    assert.deepEqual(stopped.tokenIds, whole.tokenIds.slice(0, length));
    assert.ok(stopped.logprobs.every((value, at) => Math.abs(value - (whole.logprobs[at] ?? 0)) < sameEngine));
    assert.ok((await textOf(engine, stopped.tokenIds)).includes(stop));
    assert.ok(!(await textOf(engine, stopped.tokenIds.slice(0, -1))).includes(stop), 'the last token completes it');
  });

  test('a stop token of the caller is the last token, and is named', async () => {
    const { backend } = bed();
    const { tokenIds } = await ask(backend, {});
    const third = tokenIds[2] ?? 0;
    const request = makeRequest({ sampling: sampling.parse({ temperature: 0 }), stopTokenIds: [endOfTurnId, third], maxTokens: 16 });
    const stopped = await backend.generate(request);
    assert.deepEqual([[...stopped.tokenIds], stopped.finishReason, stopped.stoppedBy], [[...tokenIds.slice(0, 3)], 'stop', third]);
    assert.equal((await ask(backend, {})).stoppedBy, endOfTurnId);
  });
}

function defineShapes(dialect: Dialect, bed: Bed): void {
  test('a bias removes a token', async () => {
    const { tokenIds } = await ask(bed().backend, {});
    const second = tokenIds[1] ?? 0;
    const biased = await ask(bed().backend, { logit_bias: { [second]: -100 } }, 4);
    assert.ok(!biased.tokenIds.includes(second));
    assert.equal(biased.tokenIds[0], tokenIds[0]);
  });

  test('a structure is what the turn is: a choice, JSON, a grammar and a regular expression', async () => {
    const { engine, backend } = bed();
    const write = async (structured_outputs: NonNullable<SamplingInput['structured_outputs']>) => {
      const { tokenIds, finishReason } = await ask(backend, { temperature: 1, seed: 3, structured_outputs }, 40);
      assert.equal(finishReason, 'stop');
      return (await textOf(engine, tokenIds.slice(0, -1))).trim();
    };
    assert.match(await write({ choice: ['yes "it" is', 'no.'] }), /^(yes "it" is|no\.)$/);
    assert.match(await write({ grammar: 'root ::= "left" | "right"' }), /^(left|right)$/);
    assert.ok(Number.isInteger(JSON.parse(await write({ json })).a));
    if (dialect === 'llamacpp') await assert.rejects(write({ regex: '[0-9]{3}' }), refuses('structured_outputs.regex'));
    else assert.match(await write({ regex: '[0-9]{3}' }), /^[0-9]{3}$/);
  });

  test('a minimum keeps the turn going, or is refused', async () => {
    const { backend } = bed();
    if (dialect === 'llamacpp') return await assert.rejects(ask(backend, { min_tokens: 14 }), refuses('min_tokens'));
    const { tokenIds } = await ask(backend, { min_tokens: 14 });
    assert.ok(tokenIds.length >= 14 && !tokenIds.slice(0, 13).includes(endOfTurnId));
  });
}

function refuses(field: string) {
  return (error: unknown) =>
    error instanceof RolloutError && error.code === 'backend-refused' && error.message.includes(`sampling.${field}`);
}
