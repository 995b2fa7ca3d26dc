// The recipe of a private image: a registry that wants a login, Apptainer, and a rollout in the image.

import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { probeApptainer } from '@millrace/sandbox';
import {
  makeTempFolder,
  makeTinyImage,
  openFakeBackend,
  openFakeTokens,
  qwen3Folder,
  renderCall,
  scriptedPolicy,
  TestService,
} from '@millrace/testkit';
import { openPrivateRegistry } from './test-bed/private-registry.ts';

const probe = await probeApptainer();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const turns = [renderCall('bash', { command: 'cat /version > answer.txt; env' }), renderCall('finish', {})];

test('a private image is fetched with the login of the service, which the sandbox does not see', { skip, timeout: 300_000 }, async () => {
  await using temp = await makeTempFolder('mr');
  const root = join(temp.path, 'root');
  await makeTinyImage(root);
  await writeFile(join(root, 'version'), '7\n');
  await mkdir(join(temp.path, 'layers'));
  await using registry = await openPrivateRegistry('ada:secret-7', root, join(temp.path, 'layers'));
  const line = await readFile(join(import.meta.dirname, 'private-image/tasks.jsonl'), 'utf8');
  const submission = JSON.parse(line.replace('registry.example.org', registry.host));
  const policy = scriptedPolicy([{ match: /version/, turns }]);
  await using backend = await openFakeBackend({ policy, tokens: await openFakeTokens() });
  const run = async (env: Readonly<Record<string, string>>, images: string) => {
    const sandbox = { driver: 'apptainer', images: join(temp.path, images) };
    await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder(), sandbox, env: { HOME: temp.path, ...env } });
    await service.client.backends.join({ url: backend.url });
    const [accepted] = await service.client.submit([{ ...submission, limits: { max_retries: 0 } }]);
    const view = await service.client.wait(accepted?.id ?? '');
    const trajectory = view.result?.turns ? await service.client.trajectory(view.id) : undefined;
    return { view, said: trajectory?.segments.flatMap(({ messages }) => messages.map(({ content }) => content)).join('\n') ?? '' };
  };
  const login = { APPTAINER_DOCKER_USERNAME: 'ada', APPTAINER_DOCKER_PASSWORD: 'secret-7' };
  const { view, said } = await run(login, 'images');
  assert.deepEqual([view.state, view.reward], ['done', 1], view.failure?.message);
  assert.match(said, /^PATH=/m);
  assert.doesNotMatch(said, /secret-7|APPTAINER_DOCKER/);
  const refused = await run({}, 'others');
  assert.equal(refused.view.reward, null);
  assert.match(refused.view.failure?.message ?? '', /the registry requires a login \(apptainer registry login\)/);
});
