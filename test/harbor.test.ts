// Harbor task folders through the whole service with Apptainer: submitted as the command line does, images built from their Dockerfiles,
// agents of a group on one prepared layer, rewards from their own checks.

import assert from 'node:assert/strict';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { probeApptainer } from '@millrace/sandbox';
import { readHarborSubmissions } from '@millrace/scenarios';
import {
  findWrongToken,
  makeTempFolder,
  makeTinyImage,
  openFakeBackend,
  openFakeTokens,
  qwen3Folder,
  renderCall,
  scriptedPolicy,
  TestService,
} from '@millrace/testkit';

const probe = await probeApptainer();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const examples = join(import.meta.dirname, '../examples/harbor');

/** One command for each task; the fourth of each group does nothing. */
const solutions: readonly [task: string, match: RegExp, command: string][] = [
  ['greeting', /greet\.sh/, `printf 'echo "hello $1"\\n' > greet.sh`],
  ['log-report', /service\.log/, `printf 'ERROR 6\\nINFO 42\\nWARN 12\\n' > report.txt`],
  ['unfinished-merge', /settings\.conf/, `sed -i '/^[<=>]/d; /5432/d' settings.conf`],
];

test('task folders of Harbor are submitted, built, run in groups and judged', { skip, timeout: 300_000 }, async () => {
  await using folder = await makeTempFolder('mr');
  await makeTinyImage(join(folder.path, 'debian'));
  const tasks = join(folder.path, 'tasks');
  for (const [name] of solutions) await cp(join(examples, name), join(tasks, name), { recursive: true });
  const finish = renderCall('finish', {});
  const policy = scriptedPolicy(solutions.map(([, match, command]) => ({ match, turns: [renderCall('bash', { command }), finish] })));
  await using backend = await openFakeBackend({ policy, tokens: await openFakeTokens() });
  const sandbox = {
    driver: 'apptainer',
    images: join(folder.path, 'images'),
    imageNames: { 'debian:12-slim': join(folder.path, 'debian') },
  } as const;
  await using service = await TestService.open({ workers: 1, tokenizer: qwen3Folder(), sandbox });
  const { client } = service;
  await client.backends.join({ url: backend.url });
  const { submissions, faults } = await readHarborSubmissions(tasks);
  assert.deepEqual([submissions.length, faults], [3, []]);
  const all = submissions.flatMap(({ submission }, index) =>
    [1, 2].map((sibling) => ({ ...submission, id: `h-${index}-${sibling}`, group: `h-${index}` })),
  );
  await client.submit(all);
  const views = await Array.fromAsync(client.results(all.map(({ id }) => id)));
  for (const { id, state, reward, failure } of views) {
    assert.deepEqual([id, state, reward, failure], [id, 'done', 1, null]);
    assert.deepEqual(findWrongToken(await client.trajectory(id)), []);
  }
  assert.equal(views.length, 6);
  const [first] = submissions;
  const missing = { ...first?.submission, scenario: 'harbor', id: 'none', task: { folder: join(tasks, 'none') } };
  await assert.rejects(client.submit([missing]), /task\.folder: .*none: task\.toml: there is no such file/);
});
