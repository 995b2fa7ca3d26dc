// A harness that hangs, loops, forks, floods, dies, leaves, or calls others: the limits of its rollout end it, what it left is judged, and
// a rollout next to it is not disturbed. It is installed by npm, from a registry of this test.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { probeBubblewrap } from '@millrace/sandbox';
import { type FakeBackend, findWrongToken, makeTempFolder, openFakeBackend, qwen3Folder, TestService } from '@millrace/testkit';

const probe = await probeBubblewrap();
const program = join(import.meta.dirname, 'hostile_harness.py');
const harness = {
  ...{ name: 'hostile', registry: 'npm', package: 'hostile', version: '1.0.0', program: 'node_modules/hostile/agent', wire: 'chat' },
  ...{ args: ['{{prompt}}', '{{url}}', '{{key}}'], memoryMiB: 256 },
};

/** The two requests with which npm installs a package. */
async function openNpmRegistry(): Promise<AsyncDisposable & { readonly url: string }> {
  await using temp = await makeTempFolder('npm');
  await mkdir(join(temp.path, 'package'));
  await copyFile(program, join(temp.path, 'package/agent'));
  await writeFile(join(temp.path, 'package/package.json'), JSON.stringify({ name: 'hostile', version: '1.0.0' }));
  await promisify(execFile)('tar', ['-czf', 'package.tgz', 'package'], { cwd: temp.path });
  const archive = await readFile(join(temp.path, 'package.tgz'));
  const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`;
  const server = createServer((request, reply) => {
    if (request.url?.endsWith('.tgz')) return void reply.end(archive);
    const dist = { tarball: `http://${request.headers.host}/package.tgz`, integrity };
    const versions = { '1.0.0': { name: 'hostile', version: '1.0.0', dist } };
    reply.end(JSON.stringify({ name: 'hostile', 'dist-tags': { latest: '1.0.0' }, versions }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

describe('a hostile harness', { skip: probe.ok ? false : `${probe.reason}; try: ${probe.remedy}` }, () => {
  const open = new AsyncDisposableStack();
  let backend: FakeBackend;
  let service: TestService;
  before(async () => {
    const registry = open.use(await openNpmRegistry());
    const cache = open.use(await makeTempFolder('npm-cache'));
    backend = open.use(await openFakeBackend({ policy: () => ({ text: 'word '.repeat(200) }), tokenMs: 1 }));
    const env = { npm_config_registry: registry.url, npm_config_cache: cache.path };
    service = open.use(await TestService.open({ workers: 1, tokenizer: qwen3Folder(), harnesses: [harness], env }));
    await service.client.backends.join({ url: backend.url });
  });
  after(() => open.disposeAsync());

  async function play(instruction: string, { check = 'test -s seen.json', ...limits }: { check?: string; [limit: string]: unknown } = {}) {
    const task = { instruction, check };
    const [accepted] = await service.client.submit([{ scenario: 'shell', agent: 'hostile', task, limits }]);
    const view = await service.client.wait(accepted?.id ?? '');
    assert.deepEqual([view.state, view.reward], ['done', 1], JSON.stringify([view.failure, view.result]));
    assert.deepEqual(findWrongToken(await service.client.trajectory(view.id)), []);
    return view;
  }

  for (const [kind, limits, reason] of [
    ['hang', { run_timeout_s: 3 }, 'rollout_timeout'],
    ['fork', { run_timeout_s: 3 }, 'rollout_timeout'],
    ['loop', { max_turns: 3 }, 'max_turns'],
    ['leave', { max_turns: 4 }, 'max_turns'],
    ['die', {}, 'completed'],
  ] as const)
    test(`one that does "${kind}" ends as ${reason}, and what it left is judged`, async () => {
      const { result } = await play(kind, limits);
      assert.equal(result?.stop_reason, reason);
    });

  test('a flood of wrong keys, broken bodies and unknown paths is refused, and a rollout next to it goes on', async () => {
    const [flooded, calm] = await Promise.all([
      play('flood', { check: `grep -qx '\\["200", "400", "401", "404"\\]' seen.json` }),
      play('loop', { max_turns: 5 }),
    ]);
    assert.deepEqual([flooded.result?.turns, calm.result?.turns], [2, 5]);
  });

  test('it reaches no gateway of another rollout, not the worker, and not the service, and cannot give itself a reward', async () => {
    const [other] = await service.client.submit([
      { scenario: 'shell', agent: 'hostile', task: { instruction: 'hang', check: 'true' }, limits: { run_timeout_s: 600 } },
    ]);
    const id = other?.id ?? '';
    while (backend.generations === 0 || (await service.client.get(id)).state !== 'run') await new Promise(setImmediate);
    const { workers } = await service.client.status();
    const worker = workers.find(({ report }) => report?.gateway_url)?.report?.gateway_url ?? '';
    assert.match(worker, /^http:/);
    await play(`others ${id} ${worker} ${service.url} ${backend.url}`, { check: `grep -qx '\\["404", "no connection"\\]' seen.json` });
    await service.client.cancel(id);
  });
});
