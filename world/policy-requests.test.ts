// What a policy adds to a call, on a real vLLM: a LoRA adapter changes the tokens' probabilities, a cache salt separates prefixes, and a
// priority is accepted, on both token routes.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { RolloutError } from '@millrace/protocol';
import { makeTempFolder } from '@millrace/testkit';
import type { Engine } from './engines/engine-process.ts';
import { openVllm, skipWithoutVllm } from './engines/vllm.ts';
import { modelFolder, vllmPython } from './engines/world-cache.ts';
import { greedy, makeRequest, openEngineBackend, promptIds } from './suite/ask.ts';

const script = fileURLToPath(new URL('engines/make-lora.py', import.meta.url));
/** Longer than a block of the cache. */
const longPrompt = Array.from({ length: 12 }, () => promptIds).flat();

describe('a policy’s calls on a real vLLM', { skip: skipWithoutVllm() }, () => {
  const stack = new AsyncDisposableStack();
  let engine: Engine;

  before(async () => {
    const folder = stack.use(await makeTempFolder('lora'));
    const adapter = join(folder.path, 'step-1');
    await promisify(execFile)(vllmPython(), [script, modelFolder(), adapter]);
    const lora = ['--enable-lora', '--max-lora-rank', '8', '--lora-modules', `step-1=${adapter}`];
    engine = stack.use(await openVllm({ scaleOut: true, args: [...lora, '--scheduling-policy', 'priority'] }));
  });
  after(() => stack.disposeAsync());

  for (const dialect of ['vllm', 'vllm-completions'] as const) {
    const call = (changes: Parameters<typeof makeRequest>[0]) =>
      openEngineBackend(engine, dialect).generate(makeRequest({ sampling: greedy, maxTokens: 8, ...changes }));

    test(`${dialect}: an adapter samples with its own weights, and one that is not loaded is an error that names it`, async () => {
      const [base, adapted, again] = [await call({}), await call({ adapter: 'step-1' }), await call({})];
      assert.deepEqual(again.tokenIds, base.tokenIds);
      assert.notDeepEqual([...adapted.logprobs], [...base.logprobs]);
      await assert.rejects(call({ adapter: 'step-2' }), (error) => {
        assert.ok(error instanceof RolloutError);
        assert.match(error.message, /^backend real does not serve the LoRA adapter step-2; .*`step-2` does not exist/);
        return error.code === 'backend-failed';
      });
    });

    test(`${dialect}: a prefix is found under its own cache salt only`, async () => {
      const [first, second] = [`${dialect}-1`, `${dialect}-2`];
      const cached = async (cacheSalt: string) => (await call({ prompt: longPrompt, cacheSalt })).cachedTokens ?? 0;
      assert.equal(await cached(first), 0);
      assert.ok((await cached(first)) > 0, 'the same salt');
      assert.equal(await cached(second), 0, 'another salt');
    });

    test(`${dialect}: a priority is accepted`, async () => {
      const plain = await call({});
      assert.deepEqual((await call({ priority: 7 })).tokenIds, plain.tokenIds);
    });
  }
});
