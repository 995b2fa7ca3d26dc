// The executor as sandboxes mount it: its sources as one file, its Python program, its PTY library, and the few files of /etc that are made
// up, in one folder named by their content.
// Made once for each content, by whichever worker comes first; a half-made folder is never seen under that name.

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { access, chmod, copyFile, cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { etcContent } from './bubblewrap-arguments.ts';
import { makeSandboxId } from './orphans.ts';

const packageFile = '{"type":"commonjs"}\n';

/** Answers the folder; `main.js` in it is the executor. */
export async function writeExecutorFiles(runDir: string): Promise<string> {
  const sources = await readSources();
  const libraries = locateLibraries();
  const hash = createHash('sha256').update(JSON.stringify([renderBundle.toString(), sources, etcContent, packageFile]));
  for (const { from } of libraries) hash.update(await readFile(join(from, 'package.json')));
  return makeOnce(join(runDir, `executor-${hash.digest('hex').slice(0, 12)}`), async (scratch) => {
    await writeFile(join(scratch, 'package.json'), packageFile);
    await writeFile(join(scratch, 'main.js'), renderBundle(sources.filter(({ name }) => name.endsWith('.ts'))));
    for (const { name, text } of sources) if (!name.endsWith('.ts')) await writeFile(join(scratch, name), text);
    await mkdir(join(scratch, 'etc'));
    for (const [name, text] of Object.entries(etcContent)) await writeFile(join(scratch, 'etc', name), text);
    for (const { from, to } of libraries) await cp(from, join(scratch, 'node_modules', to), { recursive: true });
  });
}

/** Fills a folder under a name that is swept if we die, then gives it its own. */
export async function makeOnce(folder: string, fill: (scratch: string) => Promise<void>): Promise<string> {
  if (await isThere(folder)) return folder;
  const scratch = join(dirname(folder), makeSandboxId());
  await mkdir(scratch, { recursive: true });
  await fill(scratch);
  await rename(scratch, folder).catch(async (error) => {
    await rm(scratch, { recursive: true, force: true });
    if (!(await isThere(folder))) throw error; // otherwise another worker was first, with the same content
  });
  return folder;
}

/**
 * A copy of a program that can be run and not read, in the run folder: the kernel lets nobody trace, or look into the memory and
 * the open files of, a process whose program they may not read. Sandboxes mount it read-only, so that it stays so.
 */
export async function writeHiddenProgram(path: string, runDir: string): Promise<string> {
  const { size, mtimeMs } = await stat(path);
  const name = createHash('sha256').update(`${path} ${size} ${mtimeMs}`).digest('hex').slice(0, 12);
  const copy = join(runDir, `program-${name}`);
  if (await isThere(copy)) return copy;
  const scratch = join(runDir, makeSandboxId());
  await copyFile(path, scratch);
  await chmod(scratch, 0o111);
  const runs = await access(scratch, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!runs) {
    await rm(scratch);
    return path; // the run folder's disk runs no programs: then the executor is only as safe as process 1 is
  }
  await rename(scratch, copy); // whoever comes second replaces it by its like
  return copy;
}

async function readSources(): Promise<{ name: string; text: string }[]> {
  const folder = dirname(fileURLToPath(import.meta.resolve('@millrace/executor')));
  const names = (await readdir(folder)).filter((name) => name.endsWith('.ts') && name !== 'index.ts').sort();
  const paths = [...names.map((name) => join(folder, name)), join(folder, '../python/ipython_host.py')];
  return Promise.all(paths.map(async (path) => ({ name: basename(path), text: await readFile(path, 'utf8') })));
}

/** The library, and the package beside it that carries its binary for this machine. */
function locateLibraries(): { from: string; to: string }[] {
  const fromExecutor = createRequire(import.meta.resolve('@millrace/executor'));
  const library = fromExecutor.resolve('@lydell/node-pty/package.json');
  const binary = `@lydell/node-pty-${process.platform}-${process.arch}`;
  return [
    { from: dirname(library), to: '@lydell/node-pty' },
    { from: dirname(createRequire(library).resolve(`${binary}/package.json`)), to: binary },
  ];
}

/** One file for all modules, made when they are first asked for: finding and opening each takes Node a third of a millisecond. */
function renderBundle(sources: readonly { name: string; text: string }[]): string {
  const modules = sources.map(({ name, text }) => `'./${name.replace(/\.ts$/, '.js')}': (require, module) => {${toJavaScript(text)}}`);
  return `const modules = {\n${modules.join(',\n')}\n};
const made = {};
const use = (name) => (name in modules ? (made[name] ?? make(name)).exports : require(name));
function make(name, module = { exports: {} }) {
  made[name] = module;
  modules[name](use, module);
  return module;
}
make('./main.js', (use.main = { exports: {} }));
`;
}

/**
 * As CommonJS: to start takes 10 ms of CPU less than with the loader of ES modules. What our own style does not use (default exports,
 * whole-module imports) is refused rather than written wrong.
 */
export function toJavaScript(source: string): string {
  const exported: string[] = [];
  const text = stripTypeScriptTypes(source)
    .replace(/^import \{([^}]*)\} from '([^']+)';$/gm, (_all, names: string, from: string) => {
      return `const {${names.replace(/\btype \w+,?/g, '').replaceAll(' as ', ': ')}} = require('${from.replace(/\.ts$/, '.js')}');`;
    })
    .replace(/^export ((?:async )?function|class|const) (\w+)/gm, (_all, kind: string, name: string) => {
      exported.push(name);
      return `${kind} ${name}`;
    })
    .replace(/\bawait import\('([^']+)'\)/g, (_all, from: string) => `require('${from.replace(/\.ts$/, '.js')}')`)
    .replaceAll('import.meta.main', 'require.main === module')
    .replaceAll('import.meta.dirname', '__dirname');
  const left = /^(import|export)\b.*|import\.meta.*|\bimport\(.*/m.exec(text);
  if (left) throw new Error(`the executor's sources use a form that is not for sandboxes: ${left[0]}`);
  return `'use strict';${text}\nmodule.exports = { ${exported.join(', ')} };\n`;
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
