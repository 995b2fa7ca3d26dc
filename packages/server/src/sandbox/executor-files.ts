// The executor as sandboxes mount it: its sources with the types stripped, its PTY library, and the few files of /etc that are made
// up, in one folder named by their content.
// Made once for each content, by whichever worker comes first; a half-made folder is never seen under that name.

import { createHash } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { etcContent } from './bubblewrap-arguments.ts';
import { makeSandboxId } from './orphans.ts';

const packageFile = '{"type":"module"}\n';

/** Answers the folder; `main.js` in it is the executor. */
export async function writeExecutorFiles(runDir: string): Promise<string> {
  const sources = await readSources();
  const libraries = locateLibraries();
  const hash = createHash('sha256').update(JSON.stringify([sources, etcContent]));
  for (const { from } of libraries) hash.update(await readFile(join(from, 'package.json')));
  return makeOnce(join(runDir, `executor-${hash.digest('hex').slice(0, 12)}`), async (scratch) => {
    await writeFile(join(scratch, 'package.json'), packageFile);
    for (const { name, text } of sources) await writeFile(join(scratch, name.replace(/\.ts$/, '.js')), toJavaScript(text));
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

async function readSources(): Promise<{ name: string; text: string }[]> {
  const folder = dirname(fileURLToPath(import.meta.resolve('@millrace/executor')));
  const names = (await readdir(folder)).filter((name) => name.endsWith('.ts') && name !== 'index.ts').sort();
  return Promise.all(names.map(async (name) => ({ name, text: await readFile(join(folder, name), 'utf8') })));
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

function toJavaScript(source: string): string {
  return stripTypeScriptTypes(source).replace(/(from '\.\/[^']+)\.ts'/g, "$1.js'");
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
