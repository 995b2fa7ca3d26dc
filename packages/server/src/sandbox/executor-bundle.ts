// The executor's sources and the library of its terminals as one file, for a snapshot of Node to be made of.

import { readdir, readFile } from 'node:fs/promises';
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface ExecutorParts {
  /** In their own language, for `renderBundle`. */
  readonly modules: readonly Source[];
  /** To be beside the snapshot. */
  readonly files: readonly { readonly name: string; readonly text: string }[];
  /** The path of the library's binary, to be beside them. */
  readonly binary: string;
}

export interface Source {
  /** By which it is required. */
  readonly name: string;
  readonly text: string;
  readonly language: 'TypeScript' | 'CommonJS';
}

export async function readExecutor(): Promise<ExecutorParts> {
  const folder = dirname(fileURLToPath(import.meta.resolve('@millrace/executor')));
  const names = (await readdir(folder)).filter((name) => name.endsWith('.ts') && name !== 'index.ts').sort();
  const own = names.map(async (name): Promise<Source> => {
    return { name: basename(name, '.ts'), text: await readFile(join(folder, name), 'utf8'), language: 'TypeScript' };
  });
  const library = await readLibrary();
  const python = { name: 'ipython_host.py', text: await readFile(join(folder, '../python/ipython_host.py'), 'utf8') };
  return { modules: [...(await Promise.all(own)), ...library.modules], files: [python], binary: library.binary };
}

const libraryName = '@lydell/node-pty';

/** The library's modules under the names that they are required by, and the binary for this machine from the package beside it. */
async function readLibrary(): Promise<{ modules: Source[]; binary: string }> {
  const index = createRequire(import.meta.resolve('@millrace/executor')).resolve(libraryName);
  const names = (await readdir(dirname(index))).filter((name) => name.endsWith('.js'));
  const modules = names.map(async (name): Promise<Source> => {
    const text = await readFile(join(dirname(index), name), 'utf8');
    return { name: `${libraryName}/${basename(name, '.js')}`, text, language: 'CommonJS' };
  });
  const text = `module.exports = require('${libraryName}/${basename(index, '.js')}');`;
  const entry: Source = { name: libraryName, text, language: 'CommonJS' };
  const binary = createRequire(index).resolve(`${libraryName}-${process.platform}-${process.arch}/pty.node`);
  return { modules: [entry, ...(await Promise.all(modules))], binary };
}

/**
 * One file for all modules, each made when it is first required. It is run by a process that ends as a snapshot; binaries, which no snapshot
 * holds, are loaded by those that start from it, out of the folder of their first argument.
 */
export function renderBundle(modules: readonly Source[]): string {
  const makers = modules.map(({ name, text, language }) => {
    return `'${name}': (require, module, exports) => {${language === 'TypeScript' ? toJavaScript(text) : text}}`;
  });
  return `const makers = {\n${makers.join(',\n')}\n};
const made = {};
function use(name, from) {
  const key = name.startsWith('./') ? from.slice(0, from.lastIndexOf('/') + 1) + name.slice(2) : name;
  if (!(key in makers)) return key.endsWith('.node') ? load(key) : require(key);
  if (!(key in made)) {
    const module = (made[key] = { exports: {} });
    makers[key]((name) => use(name, key), module, module.exports);
  }
  return made[key].exports;
}
function load(name) {
  const { basename, dirname, join } = require('node:path');
  const module = { exports: {} };
  process.dlopen(module, join(dirname(process.argv[1]), basename(name)));
  return module.exports;
}
require('node:tty'); // for the terminals, whose modules are made with their binary
const { main } = use('main');
require('node:v8').startupSnapshot.setDeserializeMainFunction(() => main(process.argv.slice(2)));
`;
}

/**
 * As CommonJS, which is what a snapshot can be made of. What our own style does not use (default exports, whole-module imports) is refused
 * rather than written wrong.
 */
export function toJavaScript(source: string): string {
  const exported: string[] = [];
  const text = stripTypeScriptTypes(source)
    .replace(/^import \{([^}]*)\} from '([^']+)';$/gm, (_all, names: string, from: string) => {
      return `const {${names.replace(/\btype \w+,?/g, '').replaceAll(' as ', ': ')}} = require('${from.replace(/\.ts$/, '')}');`;
    })
    .replace(/^export ((?:async )?function|class|const) (\w+)/gm, (_all, kind: string, name: string) => {
      exported.push(name);
      return `${kind} ${name}`;
    })
    .replace(/\bawait import\('([^']+)'\)/g, (_all, from: string) => `require('${from.replace(/\.ts$/, '')}')`)
    .replaceAll('import.meta.main', 'false') // it begins when a process starts from the snapshot
    .replaceAll('import.meta.dirname', "require('node:path').dirname(process.argv[1])");
  const left = /^(import|export)\b.*|import\.meta.*|\bimport\(.*/m.exec(text);
  if (left) throw new Error(`the executor's sources use a form that is not for sandboxes: ${left[0]}`);
  return `'use strict';${text}\nmodule.exports = { ${exported.join(', ')} };\n`;
}
