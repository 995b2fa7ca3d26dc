// What users install, as they install it: the packed packages in an empty folder under Node.js 20, and the wheel in a fresh environment.
// The programs that run here are the examples in the READMEs of the packages.

import assert from 'node:assert/strict';
import { cp, readFile, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { probeBubblewrap } from '@millrace/sandbox';
import { makeTempFolder, type TempFolder } from '@millrace/testkit/plain';
import { buildPackages } from '../../scripts/build.ts';
import { runFirstReward } from './first-reward.ts';
import { findMissingPython, installWheel } from './python.ts';
import { runProgram } from './run-program.ts';
import { NoNetwork, openUserFolder, type Packed, packFolders, type UserFolder } from './user-folder.ts';
import { UserService } from './user-service.ts';

const root = join(import.meta.dirname, '../..');
const probe = await probeBubblewrap();
const noSandbox = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;
const millrace = 'node_modules/.bin/millrace';

describe('the published packages', { timeout: 600_000 }, () => {
  let folder: TempFolder;
  let packed: readonly Packed[] = [];
  let user: UserFolder | undefined;
  let noNetwork = '';
  let wheel: Promise<PromiseSettledResult<string>[]>;
  before(async () => {
    folder = await makeTempFolder('mr-package');
    wheel = Promise.allSettled([installWheel(join(root, 'packages/client-python'), join(folder.path, 'python'))]);
    packed = await packFolders(await buildPackages(join(folder.path, 'build')), join(folder.path, 'packed'));
    const install = openUserFolder(
      join(folder.path, 'user'),
      packed.map(({ tarball }) => tarball),
    );
    user = await install.catch((error: unknown) => {
      if (!(error instanceof NoNetwork)) throw error;
      noNetwork = `the registry cannot be reached: ${error.message}`;
      return undefined;
    });
  });
  after(async () => {
    await wheel;
    await folder?.[Symbol.asyncDispose]();
  });

  /** Skips the test where npm could not install. */
  const userOf = (t: TestContext): UserFolder | undefined => {
    if (user === undefined) t.skip(noNetwork);
    return user;
  };

  test('hold the build and nothing else', () => {
    for (const { name, files } of packed) {
      const unexpected = files.filter((file) => !/^(package\.json|README\.md|LICENSE|bin\/millrace|dist\/.*)$/.test(file));
      const sources = files.filter((file) => /\.ts$/.test(file) && !file.endsWith('.d.ts'));
      assert.deepEqual([unexpected, sources], [[], []], name);
      for (const needed of ['package.json', 'README.md', 'LICENSE']) assert.ok(files.includes(needed), `${name}: ${needed}`);
    }
    const files = packed.find(({ name }) => name === 'millrace')?.files ?? [];
    for (const needed of [
      'bin/millrace',
      'dist/main.js',
      'dist/main.js.map',
      'dist/executor/executor-x64',
      'dist/executor/executor-arm64',
      'dist/executor/ipython_host.py',
    ])
      assert.ok(files.includes(needed), needed);
  });

  test('millrace runs the Node.js 24 that comes with it, under a shell whose own is 20', async (t) => {
    const user = userOf(t);
    if (!user) return;
    assert.match((await user.run(['node', '--version'])).stdout, /^v20\./);
    const { stdout, stderr } = await user.run(['npx', 'millrace', 'doctor', '--json']);
    const checks: { name: string; level: string; seen: string }[] = JSON.parse(stdout);
    assert.match(checks.find(({ name }) => name === 'Node.js')?.seen ?? stderr, /^24\./);
    const failed = checks.filter(({ name, level }) => level === 'fail' && !(noSandbox && name === 'bubblewrap') && name !== 'port');
    assert.deepEqual(failed, []);
  });

  test('millrace without its Node.js says what it looked for and what to do', async (t) => {
    const user = userOf(t);
    if (!user) return;
    const alone = join(folder.path, 'alone');
    await cp(join(user.path, 'node_modules/millrace'), alone, { recursive: true });
    const { code, stderr } = await runProgram([join(alone, 'bin/millrace'), '--help'], { cwd: folder.path, path: [user.nodeFolder] });
    assert.equal(code, 1);
    assert.match(
      stderr,
      /it needs Node\.js 24, and found none\.\n.*node-linux-\w+ is not installed.*\n.*node is v20\..*\nInstall Node\.js 24/,
    );
  });

  test('only the documented entries can be imported', async (t) => {
    const user = userOf(t);
    if (!user) return;
    const node = join(user.path, 'node_modules/.bin/node');
    const importOf = (name: string) =>
      user.run([node, '--input-type=module', '-e', `console.log(Object.keys(await import('${name}')).join())`]);
    assert.match((await importOf('millrace/scenario')).stdout, /defineScenario.*\bz\b/);
    assert.match((await importOf('@millrace/client')).stdout, /openClient/);
    for (const name of ['millrace', 'millrace/dist/main.js', 'millrace/dist/scenario.js', '@millrace/client/dist/index.js'])
      assert.match((await importOf(name)).stderr, /ERR_PACKAGE_PATH_NOT_EXPORTED/, name);
  });

  test("the types of the READMEs' examples hold in a strict project that checks its libraries", async (t) => {
    const user = userOf(t);
    if (!user) return;
    await writeFile(join(user.path, 'scenario.ts'), await readExample('packages/cli/README.md', 'ts'));
    await writeFile(join(user.path, 'trainer.mts'), await readExample('packages/client/README.md', 'ts'));
    await writeFile(join(user.path, 'protocol.ts'), await readExample('packages/protocol/README.md', 'ts'));
    const compilerOptions = { strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false, noEmit: true };
    const config = { compilerOptions: { ...compilerOptions, module: 'nodenext', target: 'es2024', lib: ['esnext'], types: [] } };
    const files = ['scenario.ts', 'trainer.mts', 'protocol.ts'];
    await writeFile(join(user.path, 'tsconfig.json'), JSON.stringify({ ...config, files }));
    const { code, stdout } = await user.run([join(root, 'node_modules/.bin/tsc'), '-p', '.']);
    assert.deepEqual([stdout, code], ['', 0]);
  });

  test('the demo runs', { skip: noSandbox }, async (t) => {
    const user = userOf(t);
    if (!user) return;
    const { code, stdout, stderr } = await user.run(['npx', 'millrace', 'demo']);
    assert.equal(code, 0, `${stdout}${stderr}`);
  });

  test('the ten minutes of docs/installation.md lead to the first reward, with no step that is not on the page', {
    skip: noSandbox,
  }, async (t) => {
    if (!userOf(t)) return;
    const tarball = packed.find(({ name }) => name === 'millrace')?.tarball ?? assert.fail();
    const page = await readFile(join(root, 'docs/installation.md'), 'utf8');
    const { blocks, results } = await runFirstReward(page, { folder: join(folder.path, 'ten'), tarball });
    assert.match(blocks[0] ?? '', /^✔ reward 1 /m, 'try solves the scenario as it was made');
    assert.deepEqual(results.map(({ id, reward }) => [id, reward]).sort(), [
      ['first', 1],
      ['second', 1],
    ]);
    assert.match(blocks[1] ?? '', /^first +done +1\.000 +word-count/m);
    assert.match(blocks[1] ?? '', /→ finish\n +answer: 6\n/);
  });

  describe('a service in the folder', { skip: noSandbox }, () => {
    let service: UserService | undefined;
    before(async () => {
      if (!user) return;
      await writeFile(join(user.path, 'scenario.ts'), await readExample('packages/cli/README.md', 'ts'));
      service = await UserService.open(user, ['scenario.ts']);
    });
    after(() => service?.[Symbol.asyncDispose]());

    test("runs the user's own scenario", async (t) => {
      const user = userOf(t);
      if (!user || !service) return;
      const task = {
        rows: [
          [1, 20],
          [2, 22],
        ],
        column: 2,
      };
      const input = `${JSON.stringify({ scenario: 'column-sum', task })}\n`;
      const { code, stdout, stderr } = await user.run([millrace, 'submit', '-'], { input, env: { MILLRACE_URL: service.url } });
      assert.equal(code, 0, stderr);
      const { state, reward, result }: { state: string; reward: number; result: unknown } = JSON.parse(stdout);
      assert.deepEqual([state, reward], ['done', 1], JSON.stringify(result));
    });

    test("runs the trainer of the TypeScript client's README", async (t) => {
      const user = userOf(t);
      if (!user || !service) return;
      await writeFile(join(user.path, 'trainer.mts'), await readExample('packages/client/README.md', 'ts'));
      const trainer = ['node_modules/.bin/node', 'trainer.mts'];
      const { code, stdout, stderr } = await user.run(trainer, { env: { MILLRACE_URL: service.url } });
      assert.equal(code, 0, stderr);
      assert.match(stdout, /^\[ [01], [01] \] 2\n$/);
    });

    test("runs the trainer of the Python client's README, from the wheel", async (t) => {
      const missing = await findMissingPython();
      if (missing !== undefined) return t.skip(missing);
      if (!service) return t.skip(noNetwork);
      const [installed] = await wheel;
      if (installed?.status !== 'fulfilled') throw installed?.reason;
      const example = await readExample('packages/client-python/README.md', 'python');
      const env = { MILLRACE_URL: service.url };
      const { code, stdout, stderr } = await runProgram([installed.value, '-W', 'error', '-c', example], { cwd: folder.path, env });
      assert.equal(code, 0, stderr);
      const rewards = stdout.split('\n').flatMap((line) => line.split(' ')[1] ?? []);
      assert.deepEqual([rewards.length, new Set(rewards)], [16, new Set(['0.0', '1.0'])], stdout);
    });

    test('is the process that the shell started, and ends by Ctrl-C with exit code 0', async (t) => {
      if (!service) return t.skip(noNetwork);
      assert.match(await readlink(`/proc/${service.pid}/exe`), /node-linux-\w+\/bin\/node$/);
      assert.equal(await service.stop('SIGINT'), 0);
    });
  });
});

/** The first code block of a language. */
async function readExample(path: string, language: string): Promise<string> {
  const [, example] = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(await readFile(join(root, path), 'utf8')) ?? [];
  if (example === undefined) throw new Error(`${path} has no example in ${language}`);
  return example;
}
