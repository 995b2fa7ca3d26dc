// The launcher of the millrace command: which Node.js it starts, and what it says when there is none. The Node.js here are small scripts
// that print their arguments.

import assert from 'node:assert/strict';
import { cp, mkdir, readFile, symlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { runProgram } from './run-program.ts';

const launcher = join(import.meta.dirname, '../../packages/cli/bin/millrace');
const included = `node_modules/node-linux-${process.arch}/bin/node`;
const skip = process.platform === 'linux' ? false : 'only Linux has an included Node.js';

/** A folder as npm makes it, with an installed `millrace` and a `node` on PATH. */
async function openInstall(options: { readonly entry: string; readonly included?: string; readonly onPath?: string }) {
  const folder = await makeTempFolder('mr-launcher');
  const write = async (path: string, text: string) => {
    await mkdir(dirname(join(folder.path, path)), { recursive: true });
    await writeFile(join(folder.path, path), text, { mode: 0o755 });
  };
  await write(`packages/cli/${options.entry}`, '');
  await cp(launcher, join(folder.path, 'packages/cli/bin/millrace'));
  await mkdir(join(folder.path, 'links'));
  await symlink('../packages/cli/bin/millrace', join(folder.path, 'links/millrace'));
  if (options.included !== undefined) await write(included, options.included);
  if (options.onPath !== undefined) await write('bin/node', options.onPath);
  return {
    path: folder.path,
    run: (...args: string[]) => runProgram([join(folder.path, 'links/millrace'), ...args], { cwd: '/', path: [join(folder.path, 'bin')] }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

const nodeOf = (version: string) =>
  `#!/bin/sh\nif [ "$1" = --version ]; then echo v${version}; else echo "${version} runs $*"; exit 7; fi\n`;

/** Notes that it was asked to build. */
const nodeThatBuilds = `#!/bin/sh
case $2 in
  */build-executor.ts) echo built >>"\${2%/scripts/*}/builds" ;;
  *) [ "$1" = --version ] && echo v24.1.0 || echo "runs \${3##*/}" ;;
esac
`;

describe('the launcher', { skip }, () => {
  test('starts the included Node.js with all arguments, and passes on its exit code', async () => {
    await using install = await openInstall({ entry: 'dist/main.js', included: nodeOf('24.1.0'), onPath: nodeOf('26.0.0') });
    const { code, stdout } = await install.run('submit', 'a b', '--url=x');
    assert.equal(code, 7);
    assert.equal(
      stdout,
      `24.1.0 runs --disable-warning=ExperimentalWarning --disable-warning=MODULE_TYPELESS_PACKAGE_JSON ${install.path}/packages/cli/dist/main.js submit a b --url=x\n`,
    );
  });

  test('runs the sources of a clone', async () => {
    await using install = await openInstall({ entry: 'src/main.ts', included: nodeOf('24.1.0') });
    assert.match((await install.run()).stdout, /packages\/cli\/src\/main\.ts$/m);
  });

  test('builds the executor of a clone where it is missing or older than its sources, and only there', async () => {
    await using install = await openInstall({ entry: 'src/main.ts', included: nodeThatBuilds });
    const write = async (path: string) => {
      await mkdir(dirname(join(install.path, path)), { recursive: true });
      await writeFile(join(install.path, path), '');
    };
    await write('scripts/build-executor.ts');
    await write('packages/sandbox/native/main.c');
    assert.equal((await install.run('serve')).stdout, 'runs main.ts\n');
    const readBuilds = async () => (await readFile(join(install.path, 'builds'), 'utf8')).trim().split('\n').length;
    assert.equal(await readBuilds(), 1);
    await write('packages/sandbox/dist/ipython_host.py');
    await install.run('serve');
    assert.equal(await readBuilds(), 1, 'it is as new as its sources');
    await utimes(join(install.path, 'packages/sandbox/dist/ipython_host.py'), 1, 1);
    await install.run('serve');
    assert.equal(await readBuilds(), 2, 'it is older than its sources');
  });

  test('asks for the npm packages in a clone that has none', async () => {
    await using install = await openInstall({ entry: 'src/main.ts', onPath: nodeOf('26.0.0') });
    const { code, stderr } = await install.run();
    assert.deepEqual([code, stderr], [1, 'millrace: the npm packages of this clone are not installed. Run: npm ci\n']);
  });

  test('uses the node on PATH where none is included, if it is version 24 or later', async () => {
    await using newer = await openInstall({ entry: 'dist/main.js', onPath: nodeOf('26.0.0') });
    assert.match((await newer.run()).stdout, /^26\.0\.0 runs/);
    await using older = await openInstall({ entry: 'dist/main.js', onPath: nodeOf('22.3.0') });
    const { code, stderr } = await older.run();
    assert.equal(code, 1);
    assert.match(stderr, /needs Node\.js 24, and found none\.\n.*is not installed\. Run: npm install.*\n.*bin\/node is v22\.3\.0\nInstall/);
  });

  test('says so when the included Node.js does not run on this machine', async () => {
    const broken = '#!/bin/sh\necho "no C library" >&2\nexit 127\n';
    await using install = await openInstall({ entry: 'dist/main.js', included: broken, onPath: nodeOf('20.0.0') });
    const { code, stderr } = await install.run();
    assert.equal(code, 1);
    assert.match(stderr, /bin\/node does not run here: no C library\n/);
  });
});
