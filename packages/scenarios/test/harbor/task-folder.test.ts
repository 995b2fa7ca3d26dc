// Task folders and reward files of Harbor, as tables: what is read, and what is refused by which name.

import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { renderTarHeader, renderTarPadding } from '@millrace/sandbox';
import { makeTempFolder } from '@millrace/testkit/plain';
import { harborTask } from '../../src/harbor/harbor-task.ts';
import { readReward } from '../../src/harbor/reward-file.ts';
import { readHarborSubmissions } from '../../src/harbor/submissions.ts';
import { exampleFolder } from './bed.ts';

function pack(files: Readonly<Record<string, string | { readonly link: string }>>): Buffer {
  const parts = Object.entries(files).flatMap(([name, content]) => {
    if (typeof content !== 'string') return [renderTarHeader({ name: `./${name}`, mode: 0o777, type: '2', size: 0, target: content.link })];
    const body = Buffer.from(content);
    return [
      renderTarHeader({ name: `./${name}`, mode: 0o644, type: '0', size: body.length, target: '' }),
      body,
      renderTarPadding(body.length),
    ];
  });
  return Buffer.concat([...parts, Buffer.alloc(1024)]);
}

test('a reward is one finite number in a plain file, and reward.json comes first', () => {
  const cases: [Parameters<typeof pack>[0], number | RegExp][] = [
    [{ 'reward.txt': '1\n' }, 1],
    [{ 'reward.txt': ' -0.25e1 ' }, -2.5],
    [{ 'ctrf.json': '{}', 'reward.txt': '0', 'reward.json': '{"reward": 0.5, "a": 1}' }, 0.5],
    [{ 'reward.json': '0.75' }, 0.75],
    [{ 'reward.json': '{"score": true}' }, 1],
    [{ 'reward.json': '{"a": 1, "b": 0}' }, /no `reward`/],
    [{ 'reward.json': '{"reward": "1"}' }, /not a finite number/],
    [{ 'reward.json': '{"reward": 1e999}' }, /not a finite number/],
    [{ 'reward.json': 'NaN' }, /not JSON/],
    [{ 'reward.json': '', 'reward.txt': '1' }, /reward.json is empty/],
    [{ 'reward.txt': 'inf' }, /not a number/],
    [{ 'reward.txt': '1 1' }, /not a number/],
    [{ 'reward.txt': '0x1' }, /not a number/],
    [{ 'reward.txt': ' '.repeat(100_000) }, /100000 bytes/],
    [{ 'reward.json': { link: '/app/one' }, 'reward.txt': '1' }, /not a plain file/],
    [{ 'reward.json': { link: `/app/${'x'.repeat(200)}` } }, /not a plain file/],
    [{}, /neither/],
  ];
  for (const [files, expected] of cases) {
    const report = readReward(pack(files));
    if (typeof expected === 'number') assert.deepEqual(report.kind === 'reward' && report.reward, expected, JSON.stringify(files));
    else assert.match(report.kind === 'none' ? report.reason : String(report.reward), expected);
  }
});

const good = { 'task.toml': '', 'instruction.md': 'Do it.', 'environment/Dockerfile': 'FROM x\n', 'tests/test.sh': 'true' };

test('a folder that cannot be run is refused with the file, the field and the reason', async () => {
  await using temp = await makeTempFolder('hb');
  const cases: [Record<string, string>, RegExp][] = [
    [{ 'task.toml': 'a = [\n1' }, /task\.toml:\d+: /],
    [
      { 'task.toml': '[[environment.mcp_servers]]\nname = "m"\ntransport = "sse"\ncommand = "x"' },
      /task\.toml: environment\.mcp_servers\.0\.transport: an MCP server over HTTP of a task cannot be used/,
    ],
    [{ 'task.toml': '[environment]\ngpus = 1' }, /task\.toml: environment\.gpus: a GPU cannot be used/],
    [{ 'task.toml': '[environment]\nos = "windows"' }, /environment\.os: only linux/],
    [{ 'task.toml': '[environment]\nmemory = "lots"' }, /environment\.memory: expected a size/],
    [{ 'task.toml': '[[steps]]\nname = "one"' }, /steps: a task of several steps/],
    [{ 'task.toml': 'artifacts = ["../x"]' }, /artifacts\.0: /],
    [{ 'task.toml': `[verifier.env]\nKEY = "\${NO_SUCH}"` }, /KEY needs a value of NO_SUCH/],
    [{ 'instruction.md': ' ' }, /instruction\.md: it is empty/],
    [{ 'environment/docker-compose.yaml': 'services: {}' }, /docker-compose\.yaml: several services/],
    [{ 'environment/Dockerfile': 'FROM x\n\nONBUILD RUN true\n' }, /environment\/Dockerfile:3: ONBUILD is not supported/],
  ];
  for (const [index, [files, expected]] of cases.entries()) {
    const folder = join(temp.path, String(index));
    await write(folder, { ...good, ...files });
    const parsed = await harborTask.safeParseAsync({ folder });
    assert.equal(parsed.success, false, JSON.stringify(files));
    assert.deepEqual(parsed.error?.issues[0]?.path, ['folder']);
    assert.match(parsed.error?.issues[0]?.message ?? '', expected);
  }
  const without = join(temp.path, 'without');
  await write(without, { 'task.toml': '', 'instruction.md': 'x', 'environment/Dockerfile': 'FROM x' });
  assert.match((await harborTask.safeParseAsync({ folder: without })).error?.issues[0]?.message ?? '', /tests\/test\.sh: there is none/);
  await symlink('/etc/hostname', join(temp.path, '0/tests/data'));
  await write(join(temp.path, '0'), good);
  const linked = await harborTask.safeParseAsync({ folder: join(temp.path, '0') });
  assert.match(linked.error?.issues[0]?.message ?? '', /tests\/data: it is a link to .* outside/);
});

test('limits, network, working directory, home and variables come from task.toml and the Dockerfile', async () => {
  await using temp = await makeTempFolder('hb');
  const toml = `[environment]\ncpus = 2\nmemory = "4G"\nstorage = "10G"\nallow_internet = false\n[environment.env]\nA = "\${B:-b}"\nC = "\${D}"`;
  const canary = '<!-- harbor-canary GUID 0 -->\n# canary 1\n\n# Title\nDo it.\n';
  const dockerfile = 'FROM x AS one\nWORKDIR /no\nFROM x\nENV ROOT=/srv\nWORKDIR $ROOT\nWORKDIR app\nUSER ada';
  await write(temp.path, { ...good, 'task.toml': toml, 'instruction.md': canary, 'environment/Dockerfile': dockerfile });
  const { spec, folder } = await harborTask.parseAsync({ folder: temp.path, env: { D: 'd' } });
  assert.deepEqual(spec.limits, { cpus: 2, memoryMiB: 4096, diskMiB: 10_240 });
  assert.deepEqual([spec.network, folder.environment.workdir], ['none', '/srv/app']);
  assert.deepEqual(spec.env, { HOME: '/home/ada', A: 'b', C: 'd' });
  assert.deepEqual([folder.mode, folder.instruction], ['shared', '# Title\nDo it.']);
});

test('a folder of task folders becomes one submission for each, with the time limits of task.toml', async () => {
  const { submissions, faults } = await readHarborSubmissions(exampleFolder);
  assert.deepEqual(faults, []);
  const names = submissions.map(({ folder }) => folder.slice(exampleFolder.length + 1));
  assert.deepEqual(names, ['greeting', 'largest-file', 'log-report', 'unfinished-merge']);
  assert.deepEqual(submissions[0]?.submission.limits, { init_timeout_s: 360, run_timeout_s: 300, evaluate_timeout_s: 127 });
});

async function write(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}
