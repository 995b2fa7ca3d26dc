// Ctrl-C in the terminal of a worker sends SIGINT to its whole process group. The worker ignores it, and its sandboxes never receive it.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { describe, test } from 'node:test';
import { makeTempFolder, makeTinyImage } from '@millrace/testkit/plain';
import { probeApptainer } from '../../src/apptainer/probe.ts';
import { probeBubblewrap } from '../../src/bubblewrap/probe.ts';

const drivers = [
  { name: 'openBubblewrapDriver', probe: await probeBubblewrap(), needsImage: false },
  { name: 'openApptainerDriver', probe: await probeApptainer(), needsImage: true },
];

for (const { name, probe, needsImage } of drivers) {
  describe(name, { skip: probe.ok ? false : `${probe.reason}; try: ${probe.remedy}` }, () => {
    test('sandboxes and layer leases survive a SIGINT to the process group of their worker', async () => {
      await using folder = await makeTempFolder('mr');
      const image = join(folder.path, 'image');
      if (needsImage) await makeTinyImage(image);
      await using owner = await startOwner({ name, runDir: join(folder.path, 'run'), spec: needsImage ? { image } : {} });
      for (let round = 0; round < 3; round += 1) {
        process.kill(-owner.pid, 'SIGINT');
        assert.equal(await owner.readLine(), 'interrupted');
        assert.equal(await owner.ask(), 'cold: alive, fork: alive, lease: held');
      }
    });
  });
}

interface Owner extends AsyncDisposable {
  readonly pid: number;
  readLine(): Promise<string>;
  /** Runs a command in both sandboxes and looks at the lock of the layer. */
  ask(): Promise<string>;
}

/** Starts a process in its own group that ignores SIGINT, as a worker does, and has a sandbox, a layer, and a sandbox on that layer. */
async function startOwner(options: { readonly name: string; readonly runDir: string; readonly spec: object }): Promise<Owner> {
  const { name, runDir, spec } = options;
  const program = `
    import { silentLog } from '@millrace/base/log';
    import { ${name}, LayerCache } from '@millrace/sandbox';
    import { tryFileLock } from ${JSON.stringify(join(import.meta.dirname, '../../../base/src/file-lock.ts'))};
    process.on('SIGINT', () => console.log('interrupted'));
    const [runDir, spec] = [${JSON.stringify(runDir)}, ${JSON.stringify(spec)}];
    const driver = await ${name}({ runDir, log: silentLog });
    const cold = await driver.open(spec);
    const layers = new LayerCache({ driver, runDir, maxBytes: 2 ** 30 });
    const prepare = async (sandbox) => { await sandbox.writeFile('prepared', 'alive\\n'); };
    const lease = await layers.open({ spec, key: 'a', prepare, signal: new AbortController().signal, uncharged: (wait) => wait() });
    const fork = await driver.open({ ...spec, layer: lease.folder });
    const run = async (sandbox, command) => (await sandbox.runShell(command, { timeoutMs: 10_000 }).catch((error) => ({ output: error.code }))).output.trim();
    process.stdin.on('data', async () => {
      await using lock = await tryFileLock(lease.folder + '.lock');
      console.log('cold: ' + await run(cold, 'echo alive') + ', fork: ' + await run(fork, 'cat prepared') + ', lease: ' + (lock ? 'lost' : 'held'));
    });
    console.log('ready');`;
  const args = ['--input-type=module', '-e', program];
  const owner = spawn(process.execPath, args, { cwd: import.meta.dirname, detached: true, stdio: ['pipe', 'pipe', 'inherit'] });
  const readLine = openLines(owner, createInterface({ input: owner.stdout }));
  assert.equal(await readLine(), 'ready');
  return {
    pid: owner.pid ?? 0,
    readLine,
    ask() {
      owner.stdin.write('?\n');
      return readLine();
    },
    async [Symbol.asyncDispose]() {
      owner.kill('SIGKILL');
      if (owner.exitCode === null && owner.signalCode === null) await once(owner, 'exit');
    },
  };
}

function openLines(owner: ChildProcess, lines: Interface): () => Promise<string> {
  const iterator = lines[Symbol.asyncIterator]();
  return async () => {
    const { done, value } = await iterator.next();
    return done ? assert.fail(`the owner ended with ${owner.exitCode ?? owner.signalCode}`) : value;
  };
}
