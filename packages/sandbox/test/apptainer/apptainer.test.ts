// The Apptainer driver: the contract suite, and the promises of this driver alone. `apptainer-user.test.ts` runs this file again as an
// ordinary user.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { sleep } from '@millrace/base/clock';
import { silentLog } from '@millrace/base/log';
import { defineSandboxSuite, makePythonImage, makeTempFolder, makeTinyImage, type TempFolder } from '@millrace/testkit';
import { openApptainerDriver } from '../../src/apptainer/apptainer.ts';
import { probeApptainer } from '../../src/apptainer/probe.ts';
import { sandboxConfig } from '../../src/config.ts';
import type { LayerRequest, Sandbox, SandboxDriver, SandboxSpec } from '../../src/sandbox.ts';

const probe = await probeApptainer();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const timeoutMs = 10_000;

describe('apptainer', { skip }, () => {
  let temp: TempFolder;
  let folder: string;
  let image: string;
  let runDir: string;
  let driver: SandboxDriver;
  before(async () => {
    temp = await makeTempFolder('mr');
    folder = temp.path;
    image = join(folder, 'image');
    runDir = join(folder, 'run');
    await makePythonImage(image);
    driver = await openApptainerDriver({ runDir, log: silentLog });
  });
  after(() => temp[Symbol.asyncDispose]());

  const onImage = async () => ({
    ...driver,
    open: (spec: Parameters<SandboxDriver['open']>[0], options: Parameters<SandboxDriver['open']>[1]) =>
      driver.open({ image, ...spec }, options),
    ...(driver.freeze && {
      freeze: (spec: SandboxSpec, request: LayerRequest) => driver.freeze?.({ image, ...spec }, request) ?? assert.fail(),
    }),
  });
  defineSandboxSuite('apptainer', onImage, {
    uid: process.getuid?.() ?? 0,
    isRootWritable: true,
    call: () => ({ name: 'openApptainerDriver', options: { runDir }, spec: { image } }),
  });

  test('a task that may create user namespaces can mount nothing in them, and is refused if the worker is root', async () => {
    const open = await openApptainerDriver({ runDir, log: silentLog, config: sandboxConfig.parse({ allowUserNamespaces: true }) });
    const opening = open.open({ image, namespaces: 'user' });
    if (process.getuid?.() === 0) return assert.rejects(opening, { code: 'sandbox-refused', message: /ordinary user/ });
    const command =
      'unshare --map-root-user id -u; unshare --map-root-user --mount true; unshare --map-root-user --mount --propagation unchanged mount -t tmpfs x /tmp';
    await using allowed = await opening;
    assert.match((await allowed.runShell(command, { timeoutMs })).output, /^0\nunshare: .*\nmount: .*permi/);
    await using refused = await open.open({ image });
    assert.doesNotMatch((await refused.runShell(command, { timeoutMs })).output, /^0$/m);
  });

  test('a sandbox can write everywhere in its image, and the image itself does not change', async () => {
    await using sandbox = await driver.open({ image });
    const write =
      'for folder in / /usr /usr/bin /etc /root /var/tmp /tmp /workspace; do echo x > $folder/new || echo $folder; done; rm /usr/bin/wc';
    assert.equal((await sandbox.runShell(write, { timeoutMs })).output, '');
    assert.equal((await sandbox.runShell('wc', { timeoutMs })).exitCode, 127);
    await using next = await driver.open({ image });
    assert.equal((await next.runShell('find / -xdev -name new; wc </dev/null', { timeoutMs })).exitCode, 0);
    assert.ok(!(await readdir(image)).includes('new'));
  });

  test('folders of the image can be removed and created again, and files that a layer removed stay removed', async () => {
    const changed = join(folder, 'changed');
    await makeTinyImage(changed);
    for (const name of ['kept', 'made', 'gone']) {
      await mkdir(join(changed, 'data', name), { recursive: true });
      await writeFile(join(changed, 'data', name, 'file'), '');
    }
    const look = 'cd /data; find . | sort';
    const change = 'rm -r /data/made /data/gone && mkdir /data/made && echo new > /data/made/new';
    const layer = join(folder, 'changed-layer');
    const prepare = async (own: Sandbox) => {
      assert.equal((await own.runShell(change, { timeoutMs })).output, '');
    };
    await driver.freeze?.({ image: changed }, { folder: layer, prepare });
    await using fork = await driver.open({ image: changed, layer });
    assert.equal((await fork.runShell(look, { timeoutMs })).output, '.\n./kept\n./kept/file\n./made\n./made/new\n');
    assert.equal((await fork.runShell('rm -r kept made && mkdir kept; find .', { timeoutMs })).output, '.\n./kept\n');
    assert.deepEqual((await readdir(join(changed, 'data'))).sort(), ['gone', 'kept', 'made']);
  });

  test('a missing image and a task without an image are refused, and nothing is left behind', async () => {
    await assert.rejects(driver.open({}), { code: 'sandbox-refused', message: /names no image, and sandbox\.image is not set/ });
    await assert.rejects(driver.open({ image: '/no/such.sif' }), { code: 'sandbox-refused', message: /no image \/no\/such\.sif/ });
    assert.deepEqual(sandboxesIn(await readdir(runDir)), []);
  });

  test('a task without an image gets the image of the configuration', async () => {
    const own = await openApptainerDriver({ runDir, log: silentLog, config: sandboxConfig.parse({ image }) });
    await using sandbox = await own.open({});
    assert.equal((await sandbox.runShell('ls /usr/bin/wc', { timeoutMs })).output, '/usr/bin/wc\n');
  });

  test('the disk limit applies everywhere in the image, and a fork has everything that was prepared in the image', async () => {
    await using sandbox = await driver.open({ image, limits: { diskMiB: 16 } });
    assert.match((await sandbox.runShell('head -c 64M /dev/zero > /usr/large', { timeoutMs })).output, /No space left on device/);
    const layer = join(folder, 'layer');
    const prepare = async (own: Sandbox) => {
      await own.runShell('echo made > /usr/made; rm /usr/bin/wc; echo new > /etc/passwd', { timeoutMs });
    };
    await driver.freeze?.({ image }, { folder: layer, prepare });
    await using fork = await driver.open({ image, layer });
    await using plain = await driver.open({ image });
    const look = 'cat /usr/made; ls /usr/bin/wc';
    assert.match((await fork.runShell(`${look}; rm /usr/made; cat /usr/made`, { timeoutMs })).output, /^made\nls: .*\ncat: .*\n$/);
    assert.match((await plain.runShell(look, { timeoutMs })).output, /^cat: .*\n\/usr\/bin\/wc\n$/);
    await using next = await driver.open({ image, layer });
    assert.match((await next.runShell(look, { timeoutMs })).output, /^made\nls: .*\n$/);
  });

  test('without mounts, sandboxes write to their folders, and there are no layers', async () => {
    const bin = join(folder, 'bin');
    await mkdir(bin);
    await symlink('/bin/false', join(bin, 'unshare'));
    const { PATH } = process.env;
    process.env.PATH = `${bin}:${PATH}`;
    const own = await openApptainerDriver({ runDir, log: silentLog }).finally(() => Object.assign(process.env, { PATH }));
    assert.equal(own.freeze, undefined);
    await assert.rejects(own.open({ image, layer: folder }), { code: 'sandbox-start-failed', message: /cannot mount file systems/ });
    await using sandbox = await own.open({ image });
    const write = 'for folder in / /usr /tmp /workspace; do echo x > $folder/new || echo $folder; done; cat /workspace/new';
    assert.equal((await sandbox.runShell(write, { timeoutMs })).output, 'x\n');
  });

  test('an image without a C library runs the executor, and an image without bash is refused with the reason', async () => {
    const bare = join(folder, 'bare');
    for (const name of ['dev', 'etc', 'proc', 'tmp', 'var/tmp']) await mkdir(join(bare, name), { recursive: true });
    await assert.rejects(driver.open({ image: bare }), { code: 'sandbox-refused', message: /no \/bin\/bash in this image.*add bash/ });
    assert.deepEqual(sandboxesIn(await readdir(runDir)), []);
  });

  test('images that lack folders, or have links in place of folders, run and look unchanged', async () => {
    const odd = join(folder, 'odd');
    await makeTinyImage(odd);
    for (const name of ['proc', 'run', 'var', 'etc']) await rm(join(odd, name), { recursive: true });
    const see = async () => {
      await using sandbox = await driver.open({ image: odd });
      return (await sandbox.runShell('touch /seen && readlink /run; ls /run', { timeoutMs })).output;
    };
    assert.equal(await see(), 'millrace\n');
    await mkdir(join(odd, 'data'));
    await symlink('data', join(odd, 'run'));
    assert.equal(await see(), 'data\nmillrace\n');
    assert.deepEqual(await readdir(join(odd, 'data')), []);
  });

  test('a failed start reports what Apptainer printed', async () => {
    await assert.rejects(driver.open({ image: '/etc/passwd' }), { code: 'sandbox-start-failed', message: /image format not recognized/ });
    const broken = await openApptainerDriver({ runDir, log: silentLog, apptainerPath: '/no/such/apptainer' });
    await assert.rejects(broken.open({ image }), {
      code: 'sandbox-start-failed',
      message: /\/no\/such\/apptainer: (not found|No such file)/,
    });
  });

  test('a sandbox whose disk cannot be created releases its image', async () => {
    let leases = 0;
    const open = async () => {
      leases += 1;
      const release = async () => {
        leases -= 1;
      };
      return { path: image, [Symbol.asyncDispose]: release };
    };
    const other = await openApptainerDriver({ runDir, log: silentLog, images: { open } });
    await assert.rejects(other.open({ image, limits: { diskMiB: 2 ** 50 } }), { code: 'sandbox-start-failed' });
    assert.equal(leases, 0);
    assert.deepEqual(sandboxesIn(await readdir(runDir)), []);
  });

  test("only a task that asks for the machine's network gets it, and only if the configuration allows it", async () => {
    const server = createServer((socket) => socket.end('reached\n'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const open = await openApptainerDriver({ runDir, log: silentLog, config: sandboxConfig.parse({ allowHostNetwork: true }) });
    const reach = async (network: 'none' | 'host') => {
      await using sandbox = await open.open({ image, network });
      return (await sandbox.runShell(`cat </dev/tcp/127.0.0.1/${port}`, { timeoutMs })).output;
    };
    assert.equal(await reach('host'), 'reached\n');
    assert.match(await reach('none'), /Connection refused/);
    server.close();
  });

  test('Apptainer may be installed under the name singularity', async () => {
    const bin = join(folder, 'named');
    await mkdir(bin);
    await symlink(probe.ok ? probe.path : '', join(bin, 'singularity'));
    const named = await openApptainerDriver({ runDir, log: silentLog, apptainerPath: join(bin, 'singularity') });
    await using sandbox = await named.open({ image });
    assert.equal((await sandbox.runShell('echo here', { timeoutMs })).output, 'here\n');
  });

  test('a sandbox whose first process is killed is dead, and its folder is removed', async () => {
    const sandbox = await driver.open({ image });
    const died = once(sandbox.died, 'abort');
    process.kill(await readFirstProcess(join(runDir, sandbox.id)), 'SIGKILL');
    await died;
    await assert.rejects(sandbox.runShell('true', { timeoutMs }), { code: 'sandbox-died' });
    await sandbox[Symbol.asyncDispose]();
    assert.deepEqual(sandboxesIn(await readdir(runDir)), []);
  });

  test('many sandboxes can be opened and closed at the same time', async () => {
    const sandboxes = await Promise.all(Array.from({ length: 8 }, () => driver.open({ image })));
    const outputs = await Promise.all(sandboxes.map((sandbox, index) => sandbox.runShell(`echo ${index}`, { timeoutMs })));
    assert.deepEqual(
      outputs.map(({ output }) => output),
      sandboxes.map((_, index) => `${index}\n`),
    );
    await Promise.all(sandboxes.map((sandbox) => sandbox[Symbol.asyncDispose]()));
    assert.deepEqual(sandboxesIn(await readdir(runDir)), []);
  });

  for (const kind of ['directory', 'SIF file'] as const) {
    test(`no sandbox of a ${kind} outlives its owner: after kill -9 its processes end, and a sweep removes its folder`, async () => {
      const source = kind === 'directory' ? image : await buildSif(image);
      const { owner, id } = await startOwner(runDir, source);
      owner.kill('SIGKILL');
      await once(owner, 'exit');
      await waitUntilNoneHas(id);
      assert.equal(await driver.sweep(), 1);
      assert.deepEqual(sandboxesIn(await readdir(runDir)), []);
    });

    test(`a sweep removes everything of a sandbox of a ${kind} whose holder and owner were killed`, async () => {
      const source = kind === 'directory' ? image : await buildSif(image);
      const { owner, id } = await startOwner(runDir, source);
      const first = await readFirstProcess(join(runDir, id));
      const holder = Number(/^PPid:\t(\d+)$/m.exec(await readFile(`/proc/${first}/status`, 'utf8'))?.[1]);
      process.kill(holder, 'SIGKILL');
      owner.kill('SIGKILL');
      await once(owner, 'exit');
      await driver.sweep();
      await waitUntilNoneHas(id);
      assert.deepEqual(sandboxesIn(await readdir(runDir)), []);
    });
  }

  /** Builds the file once, without compression. */
  async function buildSif(source: string): Promise<string> {
    const file = `${source}.sif`;
    if (existsSync(file)) return file;
    const args = ['--silent', 'build', '--mksquashfs-args', '-noI -noD -noF -noX', file, source];
    const build = spawn(probe.ok ? probe.path : '', args, { stdio: ['ignore', 'ignore', 'inherit'] });
    assert.equal((await once(build, 'exit'))[0], 0);
    return file;
  }
});

function sandboxesIn(names: string[]): string[] {
  return names.filter((name) => name.startsWith('sb-'));
}

async function readFirstProcess(folder: string): Promise<number> {
  return Number((await readFile(join(folder, 'process'), 'utf8')).split(' ')[0]);
}

/** Starts a process that owns a sandbox with detached background processes of several kinds, and waits until it is ready. */
async function startOwner(runDir: string, image: string) {
  const program = `
    import { silentLog } from '@millrace/base/log';
    import { openApptainerDriver } from '@millrace/sandbox';
    const driver = await openApptainerDriver({ runDir: ${JSON.stringify(runDir)}, log: silentLog });
    const sandbox = await driver.open({ image: ${JSON.stringify(image)} });
    await sandbox.runShell('setsid sleep 1000 & nohup sleep 1000 & (setsid bash -c "(sleep 1000 &)" &) ; true', { timeoutMs: 10000 });
    console.log(sandbox.id);`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exit = once(owner, 'exit').then(([code]) => assert.fail(`the owner of the sandbox ended with ${code}`));
  exit.catch(() => {}); // it may end later
  const [id] = await Promise.race([once(owner.stdout, 'data'), exit]);
  return { owner, id: String(id).trim() };
}

/** The kernel kills them. They are not our children, so there is no event to wait for. */
async function waitUntilNoneHas(id: string): Promise<void> {
  let left: string[] = [];
  for (let tries = 0; tries < 200; tries += 1) {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const mounts = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '')));
    left = pids.filter((_, index) => mounts[index]?.includes(`${id}/`));
    if (left.length === 0) return;
    await sleep(10);
  }
  assert.fail(`processes ${left.join(', ')} of ${id} are still running`);
}
