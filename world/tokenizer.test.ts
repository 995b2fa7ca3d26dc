// Three tokenizers of one model, ours and those of both engines, give the same ids; and the one read from the GGUF file is the same too.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { openTokenizer } from '@millrace/model';
import { makeTempFolder } from '@millrace/testkit';
import { z } from 'zod';
import { writeTokenizer } from './engines/gguf-tokenizer.ts';
import { skipWithoutLlama } from './engines/llama.ts';
import { openSharedLlama, openSharedVllm } from './engines/shared-engines.ts';
import { skipWithoutVllm } from './engines/vllm.ts';
import { ggufPath, modelFolder, modelName } from './engines/world-cache.ts';

const texts = [
  '<|im_start|>user\nWhat is 17 + 25?<|im_end|>\n<|im_start|>assistant\n',
  'In 2024, 3.14 × 1,000 = 3140; x_1 += "a\tb"\n\n\n  indented\r\n',
  'naïve café — “quoted” 東京 🙂 Ελλάδα',
  readFileSync(join(import.meta.dirname, '../README.md'), 'utf8').slice(0, 4000),
];

describe('tokenizers', { skip: skipWithoutVllm() || skipWithoutLlama(), timeout: 900_000 }, () => {
  test('our tokenizer gives the ids of vLLM and of llama-server', async () => {
    const tokenizer = await openTokenizer(modelFolder());
    await using vllm = await openSharedVllm();
    await using llama = await openSharedLlama();
    for (const text of texts) {
      const ours = [...tokenizer.encode(text)];
      const asked = { model: modelName, prompt: text, add_special_tokens: false };
      assert.deepEqual(await readTokens(`${vllm.url}/tokenize`, asked), ours, `vLLM: ${text.slice(0, 40)}`);
      const content = { content: text, parse_special: true, add_special: false };
      assert.deepEqual(await readTokens(`${llama.url}/tokenize`, content), ours, `llama-server: ${text.slice(0, 40)}`);
    }
  });

  test('the tokenizer in the GGUF file gives the same ids', async () => {
    await using folder = await makeTempFolder('tokenizer');
    const [fromGguf, whole] = [await openTokenizer(writeTokenizer(ggufPath(), folder.path)), await openTokenizer(modelFolder())];
    for (const text of texts) assert.deepEqual([...fromGguf.encode(text)], [...whole.encode(text)]);
  });
});

async function readTokens(address: string, body: unknown): Promise<number[]> {
  const answer = await fetch(address, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  return z.looseObject({ tokens: z.array(z.int()) }).parse(await answer.json()).tokens;
}
