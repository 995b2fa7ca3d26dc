// The tool server over real sandboxes: shell state stays for a trajectory, ends with it, and belongs to it alone.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { probeBubblewrap } from '@millrace/sandbox';
import { makeTempFolder, type TempFolder } from '@millrace/testkit/plain';
import { readConfig } from '../../src/config.ts';
import { openToolServer, type RunningToolServer } from '../../src/tool-service.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

describe('tool server', { skip }, () => {
  let temp: TempFolder | undefined;
  let server: RunningToolServer | undefined;
  before(async () => {
    temp = await makeTempFolder('tool-server');
    const config = readConfig(undefined, {
      data: temp.path,
      run: temp.path,
      'http.port': 0,
      'sandbox.driver': 'bubblewrap',
      'sandbox.warm.sandboxes': 0,
    });
    server = await openToolServer(config, { log: silentLog, sandboxes: 2, timeoutMs: 10_000, idleMs: 60_000 });
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    await temp?.[Symbol.asyncDispose]();
  });

  async function call(path: string, body?: unknown, method = 'POST') {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' };
    const reply = await fetch(`${server?.url}${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    return { status: reply.status, body: (await reply.json()) as Record<string, unknown> };
  }
  const act = async (id: string, action: string, more: object = {}) => {
    const { status, body } = await call('/get_observation', { trajectory_ids: [id], actions: [action], ...more });
    assert.equal(status, 200, JSON.stringify(body));
    return [body.observations, body.dones, body.valids].map((list) => (list as unknown[])[0]);
  };

  test('directory, variables and functions stay from action to action, and the same action runs again', async () => {
    assert.deepEqual(await act('a', '<bash>cd /tmp && n=1 && more() { n=$((n + 1)); }</bash>'), [
      '\n<o>\n[no output]\n</o>\n',
      false,
      true,
    ]);
    assert.deepEqual(await act('a', '<bash>more; echo $PWD $n</bash>'), ['\n<o>\n/tmp 2\n</o>\n', false, true]);
    assert.deepEqual(await act('a', '<bash>more; echo $PWD $n</bash>'), ['\n<o>\n/tmp 3\n</o>\n', false, true]);
    assert.deepEqual(await act('b', '<bash>echo "$PWD[$n]"</bash>', { is_last_step: [true] }), [
      '\n<o>\n/workspace[]\n</o>\n',
      false,
      true,
    ]);
    assert.deepEqual(await act('a', '', { finish: [true], is_last_step: [true] }), ['', true, true]);
    assert.deepEqual(await act('a', '<bash>echo "[$n]"</bash>', { is_last_step: [true] }), ['\n<o>\n[]\n</o>\n', false, true]);
    assert.equal((await call('/health', undefined, 'GET')).body.active_tasks, 0);
  });

  test('a text without an action is invalid and opens no sandbox; a request of unequal lists is refused by name', async () => {
    const [observation, done, valid] = await act('c', 'I think it is 4.');
    assert.match(JSON.stringify(observation), /no action was found/);
    assert.deepEqual([done, valid], [false, false]);
    assert.equal((await call('/health', undefined, 'GET')).body.active_tasks, 0);
    const { status, body } = await call('/get_observation', { trajectory_ids: ['c'], actions: ['a', 'b'] });
    assert.deepEqual([status, /actions: 2 for 1 trajectory_ids/.test(JSON.stringify(body))], [400, true]);
  });

  test('when all sandboxes are taken, the next trajectory waits until one ends', async () => {
    await Promise.all(['d', 'e'].map((id) => act(id, '<bash>true</bash>')));
    const waiting = act('f', '<bash>echo late</bash>', { is_last_step: [true] });
    await act('d', '', { finish: [true] });
    assert.deepEqual(await waiting, ['\n<o>\nlate\n</o>\n', false, true]);
    await act('e', '', { finish: [true] });
  });

  test('a lent sandbox runs programs, takes and gives files, and is gone when closed', async () => {
    assert.equal((await call('/sandboxes', { name: 'x', env: { COLOR: 'red' } })).status, 200);
    assert.equal((await call('/sandboxes', { name: 'x' })).status, 409);
    const path = '/sandboxes/x/file?path=note.bin';
    const content = Buffer.from([0, 255, 10]);
    await fetch(`${server?.url}${path}`, { method: 'PUT', headers: { 'content-type': 'application/octet-stream' }, body: content });
    assert.deepEqual(Buffer.from(await (await fetch(`${server?.url}${path}`)).arrayBuffer()), content);
    const ran = await call('/sandboxes/x/exec', { argv: ['bash', '-c', 'echo $COLOR; wc -c < note.bin; exit 3'] });
    assert.deepEqual([ran.body.exit_code, ran.body.stdout, ran.body.timed_out], [3, 'red\n3\n', false]);
    assert.deepEqual((await call('/sandboxes/x', undefined, 'DELETE')).body, { name: 'x', closed: true });
    assert.equal((await call('/sandboxes/x/exec', { argv: ['true'] })).status, 404);
  });
});
