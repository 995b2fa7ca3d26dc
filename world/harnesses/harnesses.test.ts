// Real harnesses from the registries, each in a sandbox without network: it finds its model on the loopback, runs commands that change files,
// and ends by itself. The same in bubblewrap and, with an image that has neither Node.js nor a complete Python, in Apptainer.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { silentLog } from '@millrace/base/log';
import {
  type Harness,
  harnessCatalog,
  installHarness,
  openApptainerDriver,
  openBubblewrapDriver,
  probeApptainer,
  probeBubblewrap,
  runHarness,
  type SandboxDriver,
  type SandboxSpec,
} from '@millrace/sandbox';
import { makeTempFolder, makeTinyImage, type TempFolder } from '@millrace/testkit';
import { worldCacheFolder } from '../engines/world-cache.ts';
import { openScriptedModel } from './scripted-model.ts';

const runDir = join(worldCacheFolder(), 'harnesses');
const probes = { bubblewrap: await probeBubblewrap(), apptainer: await probeApptainer() };
const key = 'key-of-this-rollout';
/** Not an option, although it looks like one. */
const prompt = '- Write the two files.\n- Say "done".';
/** The second command proves that the first one has run in the same workspace; the last one ends mini-swe-agent. */
const commands = [
  "printf 'one\\n' > first.txt",
  "(cat first.txt; printf 'two\\n') > second.txt; id -u",
  'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT',
];

for (const driverName of ['bubblewrap', 'apptainer'] as const) {
  const probe = probes[driverName];
  describe(`harnesses in ${driverName}`, { skip: probe.ok ? false : `${probe.reason}; try: ${probe.remedy}` }, () => {
    let driver: SandboxDriver;
    let temp: TempFolder;
    let spec: SandboxSpec = {};
    before(async () => {
      temp = await makeTempFolder('harness-image');
      if (driverName === 'bubblewrap') driver = await openBubblewrapDriver({ runDir, log: silentLog });
      else {
        driver = await openApptainerDriver({ runDir, log: silentLog });
        spec = { image: join(temp.path, 'image') };
        await makeTinyImage(join(temp.path, 'image'));
        await addCLibrary(join(temp.path, 'image'));
      }
    });
    after(() => temp[Symbol.asyncDispose]());

    for (const harness of harnessCatalog) {
      test(`${harness.name} ${harness.version} does a task of several turns and ends by itself`, async (context) => {
        const { seen, end } = await play(driver, spec, harness);
        context.diagnostic(`${seen.length} requests, exit code ${end.exitCode}`);
      });
    }
  });
}

/** The parts of the C library that the programs of the small image do not use, and that every image with this C library has. */
async function addCLibrary(image: string): Promise<void> {
  const { stdout } = await promisify(execFile)('ldd', ['/bin/bash']);
  const folder = dirname(/=> (\S+\/libc\.so\.6)/.exec(stdout)?.[1] ?? '');
  const names = ['libdl.so.2', 'libm.so.6', 'libpthread.so.0', 'librt.so.1'];
  for (const name of names) await copyFile(join(folder, name), join(image, 'usr/lib', name));
}

async function play(driver: SandboxDriver, spec: SandboxSpec, harness: Harness) {
  const folder = await installHarness(harness, { runDir });
  await using sandbox = await driver.open({ ...spec, harness: folder, limits: { memoryMiB: 4096, processes: 512 } });
  const model = openScriptedModel(harness.wire, commands, key);
  const server = createServer(model.answer);
  await using service = await sandbox.listen({ onConnection: (connection) => void server.emit('connection', connection) });
  const url = `http://127.0.0.1:${service.port}`;
  const end = await runHarness(sandbox, harness, { url, key, model: 'm', prompt, timeoutMs: 120_000 });
  const about = `${JSON.stringify(end, undefined, 1).slice(0, 3000)}\n${model.seen.map(({ method, path }) => `${method} ${path}`).join('\n')}`;
  assert.equal(end.kind, 'exited', about);
  const read = async (name: string) => (await sandbox.readFile(name, { maxBytes: 100 })).toString('utf8');
  assert.equal(await read('first.txt').catch(String), 'one\n', about);
  assert.equal(await read('second.txt').catch(String), 'one\ntwo\n', about);
  const { entries } = await sandbox.readFolder('/workspace', { maxBytes: 1 << 20 });
  assert.ok(entries <= 3, `the harness left ${entries} entries in /workspace`);
  const calls = model.seen.filter(({ method }) => method === 'POST');
  assert.ok(calls.length >= commands.length, about);
  assert.ok(
    calls.every(({ authorized }) => authorized),
    'every call has the key',
  );
  assert.ok(JSON.stringify(calls[0]?.body).includes(JSON.stringify(prompt).slice(1, -1)), 'the first call has the prompt, unchanged');
  return { seen: model.seen, end };
}
