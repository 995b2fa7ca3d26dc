// `millrace model check URL` against a real llama-server and a real vLLM: the proof of their model, or one message that says what to do.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { millrace, openIo } from '../../packages/cli/test/fake-io.ts';
import { openLlama, skipWithoutLlama } from '../engines/llama.ts';
import { openPlainVllm } from '../engines/shared-engines.ts';
import { openVllm, skipWithoutVllm } from '../engines/vllm.ts';
import { modelsFolder } from './collection.ts';

const check = (...words: string[]) => millrace(['model', 'check', ...words], openIo());
const qwen = join(modelsFolder, 'llama-cpp-python/vendor/llama.cpp/models/templates/Qwen-Qwen2.5-7B-Instruct.jinja');

describe('model check of a llama-server', { skip: skipWithoutLlama(), timeout: 300_000 }, () => {
  test('its model is shown, with /v1 at the end of the address or without', async () => {
    await using engine = await openLlama({ slots: 1 });
    for (const url of [engine.url, `${engine.url}/v1`]) {
      const { code, out, err } = await check(url);
      assert.equal(code, 0, err);
      assert.match(out, /^tool calls +hermes; taught/m);
      assert.match(out, /^turn ends +with "<\|im_end\|>" \(2\); stop tokens 2$/m);
    }
  });

  test('the template that it was started with is proven', { skip: !existsSync(qwen) && 'run world/models/install.sh first' }, async () => {
    await using engine = await openLlama({ slots: 1, args: ['--jinja', '--chat-template-file', qwen] });
    const { code, out, err } = await check(engine.url, '--json');
    assert.equal(code, 0, err);
    const { tool_parser, tool_calls, checks } = JSON.parse(out);
    assert.deepEqual([tool_parser, tool_calls], ['hermes', 'proven']);
    assert.ok(
      checks.every(({ outcome }: { outcome: string }) => outcome === 'proven'),
      out,
    );
  });

  test('a key that is missing, and an address where nothing answers, are named', async () => {
    await using engine = await openLlama({ slots: 1, args: ['--api-key', 'secret'] });
    const refused = await check(engine.url);
    assert.equal(refused.code, 1);
    assert.match(refused.err, /401/);
    assert.equal((await check(engine.url, '--api-key', 'secret')).code, 0);
    const silent = await check('http://127.0.0.1:9');
    assert.equal(silent.code, 1);
    assert.match(silent.err, /does not answer/);
  });
});

describe('model check of a vLLM', { skip: skipWithoutVllm(), timeout: 900_000 }, () => {
  test('its model is shown if it serves its chat template', async () => {
    await using engine = await openVllm({ args: ['--enable-tokenizer-info-endpoint'] });
    const { code, out, err } = await check(`${engine.url}/v1`);
    assert.equal(code, 0, err);
    assert.match(out, /^tool calls +hermes; taught/m);
    assert.match(out, /^turn ends +with "<\|im_end\|>" \(2\)/m);
  });

  test('without its chat template it is refused, and says how to get it', async () => {
    await using engine = await openPlainVllm();
    const { code, err } = await check(engine.url);
    assert.equal(code, 1);
    assert.match(err, /--enable-tokenizer-info-endpoint/);
  });
});
