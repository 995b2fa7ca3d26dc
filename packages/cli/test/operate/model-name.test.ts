// A model's name is found at a local backend, in the hub cache, or at a mirror; otherwise the message says where it is not.

import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { writeTinyModel } from '../../src/author/local/tiny-model.ts';
import { findModel, isModelName } from '../../src/operate/model-name.ts';
import { millrace, openIo } from '../fake-io.ts';

const name = 'some-org/tiny-1B';

/** Answers these paths, and 404 elsewhere. */
async function openSite(pages: Readonly<Record<string, string>>) {
  const seen: string[] = [];
  const server = createServer(({ url = '' }, reply) => {
    seen.push(url);
    const page = pages[url];
    reply.writeHead(page === undefined ? 404 : 200).end(page);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, seen, [Symbol.asyncDispose]: () => new Promise<void>((closed) => void server.close(() => closed())) };
}

async function openBed() {
  const folder = await makeTempFolder('model-name');
  const [model, cache, own] = ['model', 'hub', 'cache'].map((part) => join(folder.path, part)) as [string, string, string];
  await writeTinyModel(model);
  return {
    model,
    cache,
    own,
    env: { HF_HUB_CACHE: cache, XDG_CACHE_HOME: own },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

test('the folder that a backend on this machine serves under the name comes first', async () => {
  await using bed = await openBed();
  const models = JSON.stringify({
    data: [
      { id: 'other', root: '/' },
      { id: name, root: bed.model },
    ],
  });
  await using backend = await openSite({ '/v1/models': models });
  const found = await findModel(name, { backends: ['http://127.0.0.1:9', backend.url], env: bed.env });
  assert.deepEqual(found, { folder: bed.model, how: `which ${backend.url} serves` });
});

test('the hub cache has it under its main revision, and model check uses it', async () => {
  await using bed = await openBed();
  const repository = join(bed.cache, 'models--some-org--tiny-1B');
  const snapshot = join(repository, 'snapshots/0123abcd');
  await mkdir(join(repository, 'refs'), { recursive: true });
  await writeFile(join(repository, 'refs/main'), '0123abcd');
  await writeTinyModel(snapshot);
  assert.deepEqual(await findModel(name, { backends: [], env: bed.env }), { folder: snapshot, how: 'of the hub cache' });
  const { code, err } = await millrace(['model', 'check', name], openIo({ env: bed.env }));
  assert.deepEqual([code, err], [0, '']);
});

test('a mirror is asked only if HF_ENDPOINT names it, and only once', async () => {
  await using bed = await openBed();
  const files = ['tokenizer.json', 'tokenizer_config.json'];
  const pages = await Promise.all(
    files.map(async (file) => [`/${name}/resolve/main/${file}`, await readFile(join(bed.model, file), 'utf8')]),
  );
  await using mirror = await openSite(Object.fromEntries(pages));
  const env = { ...bed.env, HF_ENDPOINT: mirror.url };
  const { folder, how } = await findModel(name, { backends: [], env });
  assert.equal(how, `fetched from ${mirror.url}`);
  for (const file of files) assert.equal(await readFile(join(folder, file), 'utf8'), await readFile(join(bed.model, file), 'utf8'));
  const asked = mirror.seen.length;
  assert.deepEqual(await findModel(name, { backends: [], env: bed.env }), { folder, how: 'fetched before' });
  assert.equal(mirror.seen.length, asked);
});

test('a name that nothing knows is refused with every place that was looked at, and what to do', async () => {
  await using bed = await openBed();
  await using mirror = await openSite({});
  for (const [env, wanted] of [
    [bed.env, /no mirror: HF_ENDPOINT is not set/],
    [{ ...bed.env, HF_ENDPOINT: mirror.url }, /has neither tokenizer\.json nor tekken\.json/],
    [{ ...bed.env, HF_ENDPOINT: 'http://127.0.0.1:9' }, /127\.0\.0\.1:9: /],
  ] as const) {
    const { code, err } = await millrace(['serve', '--tokenizer', name], openIo({ env }));
    assert.equal(code, 2);
    assert.match(err, /some-org\/tiny-1B is no folder.*\n {2}no --backend was given to ask\n {2}not in the hub cache .*\/hub\n/);
    assert.match(err, wanted);
    assert.match(err, /hf download some-org\/tiny-1B/);
  }
});

test('a folder that exists, a path and an address are no names', async () => {
  for (const tokenizer of ['packages/cli', './a/b', '/a/b', 'http://x/y', 'a/b/c', 'models'])
    assert.equal(await isModelName(tokenizer), false, tokenizer);
});
