// The ten minutes of docs/installation.md with the packed package and a vLLM as most users start it, which says itself where the tokenizer of
// its model is.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit';
import { buildPackages } from '../../scripts/build.ts';
import { runFirstReward } from '../../test/package/first-reward.ts';
import { packFolders } from '../../test/package/user-folder.ts';
import { openVllm, skipWithoutVllm } from '../engines/vllm.ts';
import { modelName } from '../engines/world-cache.ts';

const model = 'HuggingFaceTB/SmolLM2-135M-Instruct';

test('the ten minutes lead from an empty folder and a real vLLM to the first rewards', {
  skip: skipWithoutVllm(),
  timeout: 1_800_000,
}, async () => {
  await using folder = await makeTempFolder('mr-ten');
  const packed = await packFolders(await buildPackages(join(folder.path, 'build')), join(folder.path, 'packed'));
  const tarball = packed.find(({ name }) => name === 'millrace')?.tarball ?? assert.fail();
  await using vllm = await openVllm({ rawLogprobs: true, args: ['--served-model-name', model, modelName] });
  const page = await readFile(join(import.meta.dirname, '../../docs/installation.md'), 'utf8');
  const { blocks, results } = await runFirstReward(page, { folder: join(folder.path, 'ten'), tarball, vllm: { url: vllm.url, model } });
  assert.match(blocks[0] ?? '', /^✔ reward 1 /m, 'try solves the scenario as it was made');
  assert.deepEqual(results.map(({ id }) => id).sort(), ['first', 'second']);
  for (const { id, reward } of results) assert.equal(typeof reward, 'number', `${id} was measured`);
  assert.match(blocks[1] ?? '', /^first +done /m);
  assert.match(blocks[1] ?? '', /^ +backend +127\.0\.0\.1:\d+/m, blocks[1] ?? '');
});
