// Tasks that name an image, through the whole service with Apptainer: init, the agent's turns and the check run in that image, and
// nothing is left behind, not even warm sandboxes.

import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { probeApptainer } from '@millrace/sandbox';
import {
  findWrongToken,
  makeTempFolder,
  makeTinyImage,
  openFakeBackend,
  openFakeTokens,
  processesInSandboxesOf,
  qwen3Folder,
  renderCall,
  scriptedPolicy,
  TestService,
} from '@millrace/testkit';

const probe = await probeApptainer();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

test('a task that names an image is prepared, run and checked in it', { skip }, async () => {
  await using folder = await makeTempFolder('mr');
  const image = join(folder.path, 'image');
  await makeTinyImage(image);
  await writeFile(join(image, 'etc/colour'), 'green\n');
  const policy = scriptedPolicy([
    { match: /colour/, turns: [renderCall('bash', { command: 'cat /etc/colour seed > found' }), renderCall('finish', {})] },
  ]);
  await using backend = await openFakeBackend({ policy, tokens: await openFakeTokens() });
  await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder(), sandbox: { driver: 'apptainer' } });
  const { client } = service;
  await client.backends.join({ url: backend.url });
  const check = 'test "$(cat found)" = "$(cat /etc/colour; echo seed)"';
  const task = { instruction: 'Which colour is it?', setup: 'echo seed > seed', check, image };
  const ids = Array.from({ length: 6 }, (_, index) => `image-${index}`);
  const missing = { scenario: 'shell', task: { ...task, image: join(folder.path, 'no.sif') } };
  await assert.rejects(client.submit([missing]), {
    code: 'task-invalid',
    message: /^rollouts\[0\]\.task\.image: there is no image .*no\.sif/,
  });
  await client.submit(ids.map((id) => ({ id, scenario: 'shell', task })));
  const views = await Array.fromAsync(client.results(ids));
  for (const { id, state, reward, failure } of views) {
    assert.deepEqual([id, state, reward, failure], [id, 'done', 1, null]);
    assert.deepEqual(findWrongToken(await client.trajectory(id)), []);
  }
  assert.equal(views.length, 6);
  await service.stop();
  assert.deepEqual(await processesInSandboxesOf(service.runDir), []);
  assert.deepEqual(
    (await readdir(service.runDir)).filter((name) => name.startsWith('sb-')),
    [],
  );
});
