// House rules that a compiler does not check: floors, packages, folders, sizes, first sentences, names, time and catches.
// A failure names the file and the rule.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { test } from 'node:test';
import { drawPackages } from '../scripts/draw-packages.ts';

const root = join(import.meta.dirname, '..');

interface Source {
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
  /** The text with comments blanked out, and lines where they were. */
  readonly code: string;
}

const sources = readSources(['packages/*/src/**/*.ts', 'bench/**/*.ts', 'examples/**/*.ts', 'scripts/**/*.ts', 'world/**/*.ts']).filter(
  ({ path }) => !path.includes('.test.'),
);
const tests = readSources(['packages/*/test/**/*.ts', 'test/**/*.ts', 'bench/**/*.test.ts', 'examples/**/*.test.ts', 'world/**/*.test.ts']);
/** The packages that make up the service, from the ground up. */
const servicePackages = ['base', 'answers', 'model', 'engines', 'sandbox', 'store', 'scenarios', 'worker', 'tracing', 'server'];
const serviceSources = sources.filter(({ path }) => servicePackages.includes(packageOf(path) ?? ''));

/** The floors of the packages that have some, from the ground up. */
const floors: Readonly<Record<string, readonly string[]>> = {
  worker: ['inference', 'agent', 'gateway', 'pipeline'],
  server: ['batches', 'http', 'tool-server', 'cluster'],
};

/** The folders of the second test tier; its tests stand on top. */
const worldFloors = [
  'engines',
  'sandbox',
  'recordings',
  'suite',
  'clients',
  'parity',
  'tokenizers',
  'models',
  'services',
  'dashboard',
  'scenarios',
  'harnesses',
  'trainers',
  'versions',
  'long',
];

/** What each package may import of the others. */
const packageImports: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  base: ['protocol'],
  answers: [],
  model: ['protocol', 'base'],
  engines: ['protocol', 'base'],
  sandbox: ['protocol', 'base'],
  store: ['protocol', 'base', 'engines'],
  scenarios: ['protocol', 'base', 'answers', 'model', 'sandbox'],
  worker: ['protocol', 'gateway', 'base', 'model', 'engines', 'sandbox', 'store', 'scenarios'],
  tracing: ['base'],
  server: ['protocol', 'dashboard', ...servicePackages],
  dashboard: ['protocol'],
  gateway: ['protocol'],
  client: ['protocol'],
  cli: ['protocol', 'client', 'dashboard', ...servicePackages],
  testkit: ['protocol', 'client', 'cli', ...servicePackages],
};

/** Folders that may hold more than `mostFiles`; ARCHITECTURE.md gives the reasons. */
const largeFolders: readonly string[] = ['packages/protocol/test/golden', 'docs', 'docs/decisions'];
const mostFiles = 20;

/** Files of the service that may use timers or the date, each with its reason. */
const timeExceptions: Readonly<Record<string, string>> = {
  'packages/base/src/clock.ts': 'it is the clock',
};

test('the floors of a package import only floors below them, and none through index.ts', () => {
  refuse(
    floorSources().flatMap(({ source, inside, order }) =>
      importsOf(source)
        .filter((name) => name.startsWith('.') && basename(source.path) !== 'index.ts')
        .flatMap((name) => {
          const [from, to] = [floorOf(inside), floorOf(join(dirname(inside), name))];
          if (basename(name) === 'index.ts') return [`${source.path}: imports through index.ts`];
          return rank(order, from) < rank(order, to) ? [`${source.path}: ${from} is below ${to}, and must not import ${name}`] : [];
        }),
    ),
  );
});

test('the floors of the second test tier import only floors below them', () => {
  refuse(
    [...sources, ...tests]
      .filter(({ path }) => path.startsWith('world/'))
      .flatMap((source) => {
        const rankOf = (path: string) => worldFloors.indexOf(floorOf(relative('world', path)));
        const own = rankOf(source.path);
        if (own < 0 && !/^world\/(todo\/)?[^/]+\.ts$/.test(source.path))
          return [`${source.path}: its folder is not a floor in this test's list`];
        return importsOf(source)
          .filter((name) => name.startsWith('.') && own >= 0 && rankOf(join(dirname(source.path), name)) > own)
          .map((name) => `${source.path}: must not import ${name}, which is on a floor above it`);
      }),
  );
});

test('every folder of a package with floors is a known one', () => {
  const unknown = floorSources().flatMap(({ source, inside, order }) =>
    floorOf(inside) === 'the root' || order.includes(floorOf(inside)) ? [] : [`${dirname(source.path)}: not a floor in this test's list`],
  );
  refuse([...new Set(unknown)]);
});

test('packages import only the packages they may', () => {
  refuse(
    sources.flatMap((source) => {
      const [, from = ''] = /^packages\/([^/]+)\//.exec(source.path) ?? [];
      const allowed = packageImports[from];
      if (allowed === undefined) return from === '' ? [] : [`${source.path}: package ${from} is not in this test's list`];
      const wanted = importsOf(source).flatMap((name) => toPackage(name) ?? []);
      const outside = importsOf(source).filter(
        (name) => name.startsWith('.') && !join(dirname(source.path), name).startsWith(`packages/${from}/`),
      );
      return [
        ...wanted
          .filter((name) => name !== from && !allowed.includes(name))
          .map((name) => `${source.path}: ${from} must not import ${name}`),
        ...outside.map((name) => `${source.path}: leaves its package by ${name}`),
      ];
    }),
  );
});

test('no file imports itself through other files', () => {
  const arrows = new Map<string, Map<string, string>>();
  for (const source of sources)
    for (const name of importsOf(source).filter((one) => one.startsWith('.'))) {
      const targets = arrows.get(source.path) ?? new Map<string, string>();
      arrows.set(source.path, targets.set(join(dirname(source.path), name), source.path));
    }
  refuse(findRings(arrows));
});

test('no package has more than 15,000 lines of source', () => {
  const counts = new Map<string, number>();
  for (const { path, lines } of sources) {
    const name = packageOf(path);
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + lines.length);
  }
  assert.ok(counts.size > servicePackages.length, 'the packages were found');
  refuse([...counts].filter(([, lines]) => lines > 15_000).map(([name, lines]) => `packages/${name}: ${lines} lines`));
});

test('the index of a package exports only what another package imports', () => {
  const used = new Set<string>();
  for (const source of [...sources, ...tests])
    for (const [, names = '', name = ''] of source.text.matchAll(/\b(?:import|export) (?:type )?\{([^}]*)\} from '@millrace\/([a-z]+)'/g))
      if (packageOf(source.path) !== name) for (const one of names.split(',')) used.add(`${name} ${toExported(one)}`);
  refuse(
    servicePackages.flatMap((name) => {
      const { code = '' } = sources.find(({ path }) => path === `packages/${name}/src/index.ts`) ?? {};
      const exported = [...code.matchAll(/\{([^}]*)\} from/g)].flatMap(([, names = '']) => names.split(','));
      const unused = exported
        .map(
          (one) =>
            one
              .trim()
              .split(' as ')
              .at(-1)
              ?.replace(/^type /, '') ?? '',
        )
        .filter((one) => one !== '' && !used.has(`${name} ${one}`));
      return unused.map((one) => `packages/${name}/src/index.ts: no other package imports ${one}`);
    }),
  );
});

test('the picture of the packages in ARCHITECTURE.md is drawn from the imports', () => {
  assert.ok(readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8').includes(drawPackages()), 'write it again: node scripts/write-docs.ts');
});

test('the walks in ARCHITECTURE.md go along imports, and their numbers are true', () => {
  const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8').split('## Walks')[1]?.split('\n## ')[0] ?? '';
  const walks = [...text.matchAll(/\*\*(.+): (\d+) files\.\*\*\n((?:[→⇢]? ?`.*\n)+)/g)];
  assert.equal(walks.length, 3);
  for (const [, title, count, lines = ''] of walks) {
    const steps = [...lines.matchAll(/^([→⇢]?) ?`([^`]+)`/gm)].map(([, arrow, path]) => ({ arrow, path: `packages/${path}` }));
    assert.equal(steps.length, Number(count), title);
    for (const [index, { arrow, path }] of steps.entries()) {
      assert.ok(existsSync(join(root, path)), path);
      const before = steps[index - 1]?.path ?? path;
      if (arrow === '→') assert.ok(isImported(before, path) || isImported(path, before), `${before} → ${path}`);
    }
  }
});

test('every package says in a README what it promises and how to test it alone', () => {
  refuse(
    globSync('packages/*/package.json', { cwd: root })
      .map((path) => join(dirname(path), 'README.md'))
      .filter((path) => !existsSync(join(root, path)) || readFileSync(join(root, path), 'utf8').split('\n').length < 5)
      .map((path) => `${path}: is missing or empty`),
  );
});

test('no folder imports itself through other folders', () => {
  const arrows = new Map<string, Map<string, string>>();
  for (const source of sources.filter(({ path }) => basename(path) !== 'index.ts')) {
    for (const name of importsOf(source).filter((name) => name.startsWith('.'))) {
      const [from, to] = [dirname(source.path), dirname(join(dirname(source.path), name))];
      if (from === to) continue;
      const targets = arrows.get(from) ?? new Map<string, string>();
      arrows.set(from, targets.set(to, source.path));
    }
  }
  refuse(findRings(arrows));
});

test('no folder has more than 20 files', () => {
  const counts = new Map<string, number>();
  for (const path of trackedFiles()) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  const full = [...counts].filter(([folder, count]) => count > mostFiles && !largeFolders.includes(folder));
  refuse(full.map(([folder, count]) => `${folder}: ${count} files, more than ${mostFiles}`));
});

test('every package declares the packages that its sources and tests import', () => {
  const manifests = new Map(globSync('packages/*/package.json', { cwd: root }).map((path) => [dirname(path), readManifest(path)]));
  const outer = readManifest('package.json');
  refuse(
    [...sources, ...tests].flatMap((source) => {
      const folder = source.path.split('/').slice(0, 2).join('/');
      const { name: own, declared } = manifests.get(folder) ?? outer;
      return importsOf(source)
        .filter((name) => /^(@[a-z-]+\/)?[a-z][a-z0-9-]*(\/|$)/.test(name) && name !== 'millrace/scenario') // the loader resolves it
        .map((name) =>
          name
            .split('/')
            .slice(0, name.startsWith('@') ? 2 : 1)
            .join('/'),
        )
        .filter((name) => name !== own && !declared.has(name))
        .map((name) => `${source.path}: imports ${name}, which ${manifests.has(folder) ? folder : '.'}/package.json does not declare`);
    }),
  );
});

test('the name of a type means one thing in the whole repository', () => {
  const places = new Map<string, string[]>();
  for (const { path, code } of sources)
    for (const [, name = ''] of code.matchAll(/^(?:export )?(?:abstract )?(?:interface|type|class) (\w+)/gm))
      places.set(name, [...(places.get(name) ?? []), path]);
  refuse([...places].filter(([, paths]) => paths.length > 1).map(([name, paths]) => `${name}: declared in ${paths.join(' and ')}`));
});

test('the threads of the store load no schemas: they would take longer than the thread takes to start', () => {
  const byPath = new Map(sources.map((source) => [source.path, source]));
  const loaded = new Set(['packages/store/src/sqlite/thread.ts']);
  const found: string[] = [];
  for (const path of loaded) {
    const { code = '' } = byPath.get(path) ?? {};
    for (const [, name = ''] of code.matchAll(/^(?:import|export) (?!type )[^;'"`]*?from '([^']+)'/gm)) {
      if (name.startsWith('.')) loaded.add(join(dirname(path), name));
      else if (name.startsWith('@millrace/base/')) loaded.add(`packages/base/src/${name.slice('@millrace/base/'.length)}.ts`);
      else if (name === 'zod' || name === '@millrace/protocol')
        found.push(`${path}: loads ${name}; @millrace/protocol/plain has no schemas`);
    }
  }
  assert.ok(loaded.size > 20, 'the imports were found');
  refuse(found);
});

test('no source file has more than 300 lines, apart from lists of names', () => {
  refuse(
    sources
      .filter(({ path, lines }) => lines.length > 300 && basename(path) !== 'index.ts')
      .map(({ path, lines }) => `${path}: ${lines.length} lines`),
  );
});

test('every file opens with a sentence that says what it is', () => {
  refuse([...sources, ...tests].filter(({ text }) => !opensWithSentence(text)).map(({ path }) => `${path}: no opening sentence`));
});

test('what a file exports is imported by another file', () => {
  const imported = new Set<string>();
  const whole = new Set<string>();
  for (const { path, text } of [...sources, ...tests, ...readSources(['packages/dashboard/src/**/*.tsx'])]) {
    for (const [, names = '', name = ''] of text.matchAll(/\b(?:import|export)\s+(?:type\s+)?\{([^}]*)\}\s+from '([^']+)'/g)) {
      const base = /^@millrace\/base\/(.+)$/.exec(name)?.[1];
      const file = base === undefined ? join(dirname(path), name) : `packages/base/src/${base}.ts`;
      for (const one of names.split(',')) imported.add(`${file} ${toExported(one)}`);
    }
    for (const [, one, star] of text.matchAll(/\bimport\('(\.[^']+)'\)|\bimport \* as \w+ from '(\.[^']+)'/g))
      whole.add(join(dirname(path), one ?? star ?? ''));
  }
  // Both are read by name when a file is loaded as a scenario.
  const loaded = ['scenario', 'policy'];
  refuse(
    sources
      .filter(
        ({ path }) =>
          /^(packages\/(?!protocol|client\/)[^/]+\/src|bench|scripts|world)\//.test(path) &&
          !/\/(index|public)\.ts$/.test(path) &&
          !whole.has(path),
      )
      .flatMap(({ path, code }) =>
        [...code.matchAll(/^export (?:async function|function|const|interface|type|class|abstract class) (\w+)/gm)]
          .filter(([, name = '']) => !imported.has(`${path} ${name}`) && !loaded.includes(name))
          .map(([, name]) => `${path}: exports ${name}, which no other file imports`),
      ),
  );
});

test('nothing is exported by default or by star', () => {
  refuse(
    [...sources, ...tests].flatMap(({ path, code }) => [
      ...(/^export \*/m.test(code) ? [`${path}: export *`] : []),
      ...(/^export default/m.test(code) ? [`${path}: export default`] : []),
    ]),
  );
});

test('no file has a meaningless name', () => {
  const empty = /^(utils?|helpers?|common|misc|manager|types|shared|lib)\.ts$/;
  refuse(
    [...sources, ...tests]
      .filter(({ path }) => empty.test(basename(path)))
      .map(({ path }) => `${path}: the name says nothing about its content`),
  );
  const kebab = /^[a-z0-9]+(-[a-z0-9]+)*(\.test)?\.ts$/;
  refuse([...sources, ...tests].filter(({ path }) => !kebab.test(basename(path))).map(({ path }) => `${path}: not kebab-case`));
});

test('only the clock of the service touches timers and the date', () => {
  const touches =
    /\b(setTimeout|setInterval|Date\.now)\s*\(|\bnew Date\(\s*\)|\bDate\(\s*\)|\b(setTimeout|setInterval)\b.*from 'node:timers|scheduler\.wait/;
  refuse(
    serviceSources
      .filter(({ path }) => timeExceptions[path] === undefined)
      .flatMap(({ path, code }) =>
        code.split('\n').flatMap((line, index) => (touches.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
      ),
  );
});

test('an empty catch says why', () => {
  refuse(
    sources.flatMap(({ path, text, lines }) =>
      [...text.matchAll(/catch\s*(\([^)]*\))?\s*\{\s*\}|\.catch\(\(\)\s*=>\s*\{\s*\}\)/g)].flatMap((match) => {
        const line = text.slice(0, match.index + match[0].length).split('\n').length;
        const reason = [lines[line - 1], lines[line - 2]].some((near) => near?.includes('//'));
        return reason ? [] : [`${path}:${line}: an empty catch without a reason`];
      }),
    ),
  );
});

test('no function has more than 60 lines', () => {
  // A contract suite is one function that lists its tests.
  const counted = sources.filter(({ path }) => !path.startsWith('packages/testkit/src/suites/'));
  refuse(counted.flatMap((source) => longFunctions(source, 60)));
});

function readSources(patterns: readonly string[]): Source[] {
  const paths = globSync([...patterns], { cwd: root, exclude: (name) => name === 'node_modules' });
  return paths.sort().flatMap((path) => {
    const text = readFileSync(join(root, path), 'utf8');
    return text === '' ? [] : [{ path, text, lines: text.trimEnd().split('\n'), code: withoutComments(text) }];
  });
}

/** Every folder or file that can be reached from itself, with the files whose imports lead there. */
function findRings(arrows: ReadonlyMap<string, ReadonlyMap<string, string>>): string[] {
  const rings: string[] = [];
  for (const start of arrows.keys()) {
    const seen = new Map<string, string>();
    const queue = [start];
    for (let folder = queue.pop(); folder !== undefined; folder = queue.pop()) {
      for (const [to, file] of arrows.get(folder) ?? []) {
        if (seen.has(to)) continue;
        seen.set(to, file);
        queue.push(to);
      }
    }
    const last = seen.get(start);
    if (last !== undefined) rings.push(`${start}: its own imports lead back to it, last through ${last}`);
  }
  return rings;
}

/** Whether `from` imports this file, or its package by its name. */
function isImported(from: string, to: string): boolean {
  const [text, name] = [readFileSync(join(root, from), 'utf8'), packageOf(to)];
  const names = [...text.matchAll(/from '([^']+)'/g)].map(([, one = '']) => one);
  return names.some((one) => join(dirname(from), one) === to || (name !== packageOf(from) && one === `@millrace/${name}`));
}

function packageOf(path: string): string | undefined {
  return /^packages\/([^/]+)\//.exec(path)?.[1];
}

/** The name that a part of an import clause asks for. */
function toExported(part: string): string {
  return (
    part
      .trim()
      .replace(/^type /, '')
      .split(' as ')[0] ?? ''
  );
}

/** The folder of one of our packages, by the name that imports it. */
function toPackage(name: string): string | undefined {
  if (/^millrace(\/|$)/.test(name)) return 'cli';
  return /^@millrace\/([^/]+)/.exec(name)?.[1];
}

function readManifest(path: string): { readonly name: string; readonly declared: ReadonlySet<string> } {
  const manifest = JSON.parse(readFileSync(join(root, path), 'utf8'));
  return { name: manifest.name, declared: new Set(Object.keys({ ...manifest.dependencies, ...manifest.devDependencies })) };
}

function trackedFiles(): string[] {
  const { stdout } = spawnSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' });
  return stdout.split('\n').filter((path) => path !== '' && existsSync(join(root, path)));
}

function refuse(broken: readonly string[]): void {
  assert.equal(broken.length, 0, `\n  ${broken.join('\n  ')}\n`);
}

function importsOf({ code }: Source): string[] {
  const statements = code.matchAll(/^\s*(?:import|export)\b[^;'"`]*?from '([^']+)'|^\s*import '([^']+)'|\bimport\('([^']+)'\)/gm);
  return [...statements].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
}

function floorOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : 'the root';
}

/** The sources of packages with floors, with their path inside the package. */
function floorSources() {
  return Object.entries(floors).flatMap(([name, order]) =>
    sources
      .filter(({ path }) => path.startsWith(`packages/${name}/src/`))
      .map((source) => ({ source, inside: relative(`packages/${name}/src`, source.path), order })),
  );
}

function rank(order: readonly string[], floor: string): number {
  const index = order.indexOf(floor);
  return index < 0 ? order.length : index;
}

function opensWithSentence(text: string): boolean {
  const opening = text.replace(/^#!.*\n/, '');
  const comment = /^((?:\/\/[^\n]*\n)+)/.exec(opening)?.[1] ?? /^\/\*([\s\S]*?)\*\//.exec(opening)?.[1];
  return comment !== undefined && /[A-Za-z][^.]*\.(\s|$)/.test(comment);
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ' ')).replace(/(^|[\s;{}(,])\/\/[^\n]*/g, '$1');
}

/** Formatted code closes a function by a brace under the line that opened it. */
function longFunctions({ path, code }: Source, most: number): string[] {
  const lines = code.split('\n');
  const opens =
    /^(\s*)(?:(?:export )?(?:async )?function\b.*|.*=> \{|(?:static |async |get |set |\*|#|override )*[\w$#[\].]+\(.*\)(?:: [^=]+)? \{|\).*\{)$/;
  return lines.flatMap((line, index) => {
    const [, indent] = opens.exec(line) ?? [];
    if (indent === undefined || !line.endsWith('{') || /^\s*(if|for|while|switch|else|do|try|catch)\b/.test(line)) return [];
    const length = lines.slice(index + 1).findIndex((later) => later.startsWith(`${indent}}`)) + 2;
    return length > most ? [`${path}:${index + 1}: a function of ${length} lines`] : [];
  });
}
