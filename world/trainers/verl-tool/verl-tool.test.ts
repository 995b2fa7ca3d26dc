// The tool server as VeRL-Tool's trainer calls it. VeRL-Tool is not on PyPI: the client here is a stand-in, written from what its own agent
// loop sends. With MILLRACE_VERL_TOOL_SOURCES set to a folder with its sources, its own bash tool is run too, and timed in the same run.

import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { openDriver, openToolServer, type RunningToolServer, readConfig } from '@millrace/server';
import { makeTempFolder, type TempFolder } from '@millrace/testkit';
import { z } from 'zod';
import { askPython } from '../../engines/python-packages.ts';
import { openProofs } from '../bed/proofs.ts';

let temp: TempFolder | undefined;
let server: RunningToolServer | undefined;
after(async () => {
  await server?.[Symbol.asyncDispose]();
  await temp?.[Symbol.asyncDispose]();
});

const { prove } = openProofs('verl-tool', {
  trainer: 'VeRL-Tool',
  versions: { 'verl-tool (git)': '980962b' },
  plug: '`tool_server_url`: its agent loop runs actions in the sandboxes of `millrace tool-server`, one for each trajectory.',
  setup:
    'npx millrace tool-server --port 5500 --sandboxes 256\nactor_rollout_ref.agent.tool_server_url=http://127.0.0.1:5500/get_observation',
  sampler: 'the trainer samples itself',
  limits: [
    'VeRL-Tool is not on PyPI: the automatic test sends what its documented client sends. Its own bash tool was timed by hand, from its sources.',
    'VeRL-Tool samples and trains itself: Millrace has no trajectory of these rollouts. Its trainer sends no key, so the tool server must listen on the loopback address of its machine.',
    'Tools are `bash` and `python`. Search, SQL and the others are not served.',
  ],
});

const reply = z.object({
  observations: z.array(z.union([z.string(), z.looseObject({ obs: z.string() })])),
  dones: z.array(z.boolean()),
  valids: z.array(z.boolean()),
  processing_time_ms: z.number(),
});

before(async () => {
  temp = await makeTempFolder('verl-tool');
  const config = readConfig(undefined, { data: temp.path, run: temp.path, 'http.port': 0 });
  server = await openToolServer(config, { log: silentLog, sandboxes: 8, timeoutMs: 10_000, idleMs: 60_000 });
});

/** One trajectory in each request, with every field, as its client does. */
async function act(trajectory: string, action: string, { finish = false, last = false } = {}) {
  const response = await fetch(`${server?.url}/get_observation`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      trajectory_ids: [trajectory],
      actions: [action],
      extra_fields: [{ index: 3, split: 'train', is_last_step: last }],
      finish: [finish],
      is_last_step: [last],
    }),
  });
  const { observations, dones, valids } = reply.parse(await response.json());
  return [observations[0], dones[0], valids[0]];
}

const close = (trajectory: string) => act(trajectory, '', { finish: true, last: true });

prove('sandboxes', 'directory, variables and functions of the shell stay from action to action, and belong to one trajectory', async () => {
  await act('a', '```bash\ncd /tmp; answer=41; more() { answer=$((answer + 1)); }\n```\n```output');
  assert.deepEqual(await act('a', '```bash\nmore; echo "$PWD $answer"\n```\n```output'), ['\n/tmp 42\n```\n', false, true]);
  assert.deepEqual(await act('b', '<bash>echo "$PWD [$answer]"</bash>'), ['\n<o>\n/workspace []\n</o>\n', false, true]);
  assert.deepEqual(await close('a'), ['', true, true]);
  assert.deepEqual(await act('a', '<bash>echo "[$answer]"</bash>', { last: true }), ['\n<o>\n[]\n</o>\n', false, true]);
  await close('b');
});

prove('sandboxes', 'the same action runs as often as it is sent, and a text without an action is not valid', async () => {
  for (const times of [1, 2, 3])
    assert.deepEqual(await act('c', '<bash>echo x >> lines; wc -l < lines</bash>'), [`\n<o>\n${times}\n</o>\n`, false, true]);
  const [observation, done, valid] = await act('c', 'It is 4.');
  assert.match(JSON.stringify(observation), /invalid_reason/);
  assert.deepEqual([done, valid], [false, false]);
  await close('c');
});

/** VeRL-Tool is not on PyPI: this is measured only where its sources are. */
const sources = process.env.MILLRACE_VERL_TOOL_SOURCES;

const measure = async (t: TestContext) => {
  const folder = mkdtempSync(join(tmpdir(), 'verl-tool-'));
  const theirs = z
    .array(z.number())
    .parse(await askPython('python3', join(import.meta.dirname, 'own_bash_tool.py'), { sources, folder, calls: 60 }));
  const overHttp = await time(200, (call) => act('timed', `<bash>echo ${call}</bash>`));
  await close('timed');
  assert.ok(temp);
  const driver = await openDriver(readConfig(undefined, { data: temp.path, run: temp.path }), silentLog);
  await using sandbox = await driver.open({});
  const alone = await time(200, (call) => sandbox.runShell(`echo ${call}`, { timeoutMs: 10_000 }));
  const own = middle(theirs);
  const say = (what: string, ms: number) => `${what} ${ms.toFixed(3)} ms (${(own / ms).toFixed(1)} times faster)`;
  t.diagnostic(`p50 of an action: its tool ${own.toFixed(3)} ms; ${say('here over HTTP', overHttp)}; ${say('without HTTP', alone)}`);
  assert.ok(own > 5 * overHttp && own > 20 * alone);
};

if (sources !== undefined) test('an action takes a fraction of what it takes in its own bash tool', measure);

/** The median of the milliseconds that a call takes, after twenty that are not counted. */
async function time(calls: number, act: (call: number) => Promise<unknown>): Promise<number> {
  const found: number[] = [];
  for (let call = -20; call < calls; call += 1) {
    const startMs = performance.now();
    await act(call);
    if (call >= 0) found.push(performance.now() - startMs);
  }
  return middle(found);
}

function middle(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}
