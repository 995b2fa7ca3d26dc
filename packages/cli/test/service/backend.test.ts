// `millrace backend` against the real server.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkPort } from '@millrace/server';
import { openFakeBackend } from '@millrace/testkit';
import { openRealService } from '../real-service.ts';

test('a backend is added, listed, drained and removed', async () => {
  await using service = await openRealService();
  const added = await service.run(['backend', 'add', 'http://127.0.0.1:9/v1/', '--name', 'gpu-0', '--dialect', 'sglang', '--version', '3']);
  assert.equal(added.code, 1, 'it joined, and cannot be used');
  // The base address is used, and no server listens there, so it joins as broken and says why.
  assert.match(added.out, /^ {2}note +joined as http:\/\/127\.0\.0\.1:9: the base address, without \/v1$/m);
  assert.match(added.out, /^gpu-0 +broken +0 +0 +0 +- +- +- +3 +sglang +http:\/\/127\.0\.0\.1:9$/m);
  assert.match(added.out, /GET http:\/\/127\.0\.0\.1:9\/v1\/models/);
  assert.equal((await service.run(['backend', 'drain', 'gpu-0'])).out, 'gpu-0 is draining; 0 rollouts still run on it\n');
  assert.equal(JSON.parse((await service.run(['backend', 'ls', '--json'])).out)[0].state, 'draining');
  assert.equal(JSON.parse((await service.run(['backend', 'ls', '--json'])).out)[0].dialect, 'sglang');
  assert.match((await service.run(['backend', 'rm', 'gpu-0', 'gpu-1'])).err, /no backend is called gpu-1 or begins with it/);
  assert.equal((await service.run(['backend', 'rm', 'gpu'])).out, 'gpu-0 is removed\n');
  await service.run(['backend', 'add', 'http://127.0.0.1:9/v1', '--name', 'gpu-1']);
  assert.equal((await service.run(['backend', 'drain', 'http://127.0.0.1:9'])).code, 0);
  assert.equal(
    (await service.run(['backend', 'rm', 'http://127.0.0.1:9/v1/'])).out,
    'gpu-1 is removed\n',
    'the address that it was added with',
  );
  const empty = await service.run(['backend', 'ls']);
  assert.deepEqual([empty.code, empty.out], [0, '']);
  assert.match(empty.err, /Add one: millrace backend add/);
});

test('adding a backend prints what its server says', async () => {
  await using service = await openRealService();
  await using fake = await openFakeBackend({ policy: () => ({ text: '' }), model: 'm', maxModelLen: 2048, withoutGenerate: 403 });
  const { code, out, err } = await service.run(['backend', 'add', fake.url]);
  assert.equal(code, 0, err);
  for (const wanted of [
    /^ {2}engine +vllm 0\.32\.0$/m,
    /^ {2}model +m$/m,
    /^ {2}context +2,048 tokens$/m,
    /^ {2}route +\/v1\/completions \(.*403: Scale-out/m,
    /^ {2}logprobs +raw \(its server returns raw logprobs\)$/m,
    /^ {2}tokenizer +not checked \(no worker/m,
  ])
    assert.match(out, wanted);
});

test('an engine is recognised by what it says, and a dialect that it does not speak is named as the cause', async () => {
  await using service = await openRealService();
  for (const dialect of ['vllm', 'sglang', 'llamacpp'] as const) {
    await using fake = await openFakeBackend({ policy: () => ({ text: '' }), engine: dialect, model: 'm' });
    const { code, out, err } = await service.run(['backend', 'add', fake.url, '--name', dialect, '--json']);
    assert.equal(code, 0, err);
    assert.deepEqual([JSON.parse(out).dialect, JSON.parse(out).health, JSON.parse(out).probe.engine], [dialect, 'ok', dialect]);
    const wrong = dialect === 'vllm' ? 'llamacpp' : 'vllm';
    const refused = JSON.parse((await service.run(['backend', 'add', fake.url, '--name', 'wrong', '--dialect', wrong, '--json'])).out);
    assert.equal(refused.health, 'broken');
    assert.equal(
      refused.last_error.message,
      `its server is ${dialect}, which the dialect ${wrong} cannot call; add it again without a dialect, or with ${dialect}`,
    );
  }
  // A server that is down when it joins again keeps what is known of it.
  const again = JSON.parse((await service.run(['backend', 'add', 'http://127.0.0.1:9', '--name', 'sglang', '--json'])).out);
  assert.deepEqual([again.dialect, again.health], ['sglang', 'broken']);
});

test('a backend that is not there, a wrong address and a wrong dialect are refused', async () => {
  await using service = await openRealService();
  const gone = await service.run(['backend', 'rm', 'nope']);
  assert.equal(gone.code, 1);
  assert.match(gone.err, /nope/);
  for (const [argv, wanted] of [
    [['backend', 'add', 'gpu-0:8000'], /gpu-0:8000 is not an http address; did you mean http:\/\/gpu-0:8000\?/],
    [['backend', 'add'], /backend add needs <url>/],
    [['backend', 'add', 'http://a', 'http://b'], /takes only <url>, but got http:\/\/b/],
    [['backend', 'add', 'http://a', '--dialect', 'tgi'], /--dialect tgi is not one of vllm, /],
    [['backend', 'remove', 'x'], /backend has no action remove.*it has add, ls, drain, rm/],
  ] as const) {
    const { code, err } = await service.run(argv);
    assert.equal(code, 2, err);
    assert.match(err, wanted);
  }
  await using engine = await openFakeBackend({ policy: () => ({ text: '' }) });
  const itself = await service.run(['backend', 'add', service.url]);
  assert.match(itself.out, /this is the address of a Millrace service; add that of an LLM server/);
  const secure = await service.run(['backend', 'add', engine.url.replace('http:', 'https:')]);
  assert.match(secure.out, /: the server speaks http, not https/);
  const swapped = await service.run(['ls', '--url', engine.url]);
  assert.match(swapped.err, /returned 404: .*; is http:\S+ the address of a Millrace service, and not of an LLM server\?/);
  assert.equal(
    (await checkPort('127.0.0.1', Number(new URL(service.url).port))).seen.replace(/^\S+/, ''),
    ' is in use by a Millrace service that is already running',
  );
});
