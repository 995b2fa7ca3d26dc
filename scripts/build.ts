// Builds the npm packages into dist/: `millrace`, `client` and `protocol`, each a folder as it is published, with ES modules, source maps
// and declarations. The server, the client and the protocol are bundled into `millrace`, which also
// carries the executor for each architecture; npm packages are its dependencies.

import { globSync } from 'node:fs';
import { copyFile, cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { build, type Metafile } from 'esbuild';
import { buildDashboard } from './build-dashboard.ts';
import { buildExecutor, everyTarget } from './build-executor.ts';
import { buildTypes } from './build-types.ts';
import { type Manifest, pickVersions, readManifest, toPublished } from './manifest.ts';

const root = join(import.meta.dirname, '..');

interface PackagePlan {
  /** The folder of the result, under dist/. */
  readonly name: string;
  /** The folder of the sources, under packages/. */
  readonly from: string;
  readonly entries: Readonly<Record<string, string>>;
  /** Workspace packages whose sources go into the bundle. */
  readonly workspaces: readonly string[];
  /**
   * npm packages that are bundled too, with what they import. They, or packages below them, ask for a newer Node.js than the one that runs
   * npm on the user's machine; npm would warn about them, although only the Node.js of the package runs them.
   */
  readonly libraries: readonly string[];
  readonly target: string;
}

export const plans: readonly PackagePlan[] = [
  {
    name: 'millrace',
    from: 'cli',
    entries: {
      main: 'packages/cli/src/main.ts',
      'worker-main': 'packages/server/src/worker-main.ts',
      'store-thread': 'packages/store/src/sqlite/thread.ts',
      'grader-thread': 'packages/scenarios/src/load/grader-thread.ts',
      'attack-player': 'packages/cli/src/attack/player-main.ts',
      scenario: 'packages/scenarios/src/public.ts',
    },
    workspaces: [
      'cli',
      'server',
      'worker',
      'gateway',
      'scenarios',
      'answers',
      'store',
      'sandbox',
      'engines',
      'model',
      'base',
      'tracing',
      'dashboard',
      'client',
      'protocol',
      'testkit',
    ],
    libraries: [
      'fastify',
      'undici',
      '@modelcontextprotocol/sdk',
      'eventsource-parser',
      'pino',
      'string-width',
      'wrap-ansi',
      '@opentelemetry/sdk-trace',
      '@opentelemetry/exporter-trace-otlp-http',
      '@opentelemetry/resources',
    ],
    target: 'node24',
  },
  {
    name: 'client',
    from: 'client',
    entries: { index: 'packages/client/src/index.ts' },
    workspaces: ['client'],
    libraries: [],
    target: 'node22',
  },
  {
    name: 'protocol',
    from: 'protocol',
    entries: { index: 'packages/protocol/src/index.ts' },
    workspaces: ['protocol'],
    libraries: [],
    target: 'node22',
  },
];

/** Returns the folders of the packages. */
export async function buildPackages(out = join(root, 'dist')): Promise<string[]> {
  await rm(out, { recursive: true, force: true });
  await buildExecutor(join(out, 'millrace/dist/executor'), everyTarget);
  await buildDashboard(join(out, 'millrace/dist/dashboard'));
  const bundles = await Promise.all(plans.map((plan) => bundle(plan, out)));
  await buildTypes(root, out);
  await Promise.all(plans.map((plan, index) => complete(plan, out, bundles[index] as Metafile)));
  // Scenarios in Python import `millrace` from here, so that they need no installation and always fit the service.
  const isSource = (path: string) => !path.includes('__pycache__') && !path.endsWith('.egg-info');
  await copyFile(join(root, 'packages/scenarios/python/gym_host.py'), join(out, 'millrace/dist/gym_host.py'));
  await cp(join(root, 'packages/client-python/src'), join(out, 'millrace/dist/python'), { recursive: true, filter: isSource });
  await cp(join(root, 'packages/cli/bin'), join(out, 'millrace/bin'), { recursive: true });
  await writeLicenses(join(out, 'millrace/dist/third-party-licenses.txt'), bundles);
  return plans.map(({ name }) => join(out, name));
}

async function bundle({ name, entries, workspaces, libraries, target }: PackagePlan, out: string): Promise<Metafile> {
  const manifests = await readWorkspaces(workspaces);
  const bundled = [...libraries, ...manifests.map((manifest) => manifest.name)];
  const declared = new Set(manifests.flatMap(({ dependencies = {} }) => Object.keys(dependencies)));
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { ...entries },
    outdir: join(out, name, 'dist'),
    external: [...declared].filter((library) => !bundled.includes(library)),
    bundle: true,
    splitting: true,
    metafile: true,
    platform: 'node',
    target,
    format: 'esm',
    sourcemap: true,
    ...(libraries.length > 0 ? { banner: { js: requireOfCommonJs } } : {}),
    logLevel: 'warning',
  });
  refuseUndeclared(metafile, libraries);
  await refuseSourcePaths(metafile);
  return metafile;
}

function refuseUndeclared({ inputs }: Metafile, libraries: readonly string[]): void {
  for (const [file, { imports }] of Object.entries(inputs)) {
    if (file.includes('node_modules/')) continue;
    const undeclared = imports.flatMap(({ path }) => libraryOf(path) ?? []).find((library) => !libraries.includes(library));
    if (undeclared !== undefined) throw new Error(`${file} imports ${undeclared}, which no package.json of the workspace declares`);
  }
}

/** A path to a source file leads nowhere in a bundle. */
async function refuseSourcePaths({ inputs }: Metafile): Promise<void> {
  for (const file of Object.keys(inputs).filter((path) => !path.includes('node_modules/') && path !== 'packages/base/src/parts.ts')) {
    const [path] = /new URL\('[^']+\.ts', import\.meta\.url\)/.exec(await readFile(join(root, file), 'utf8')) ?? [];
    if (path !== undefined) throw new Error(`${file}: ${path} is not there in a build; name it in packages/base/src/parts.ts`);
  }
}

/** Bundled CommonJS libraries call `require` for Node's own modules. */
const requireOfCommonJs =
  "import { createRequire as createRequireOfBuild } from 'node:module'; const require = createRequireOfBuild(import.meta.url);";

/** Adds what is not code: the manifest, the README and the licence. */
async function complete({ name, from, workspaces }: PackagePlan, out: string, metafile: Metafile): Promise<void> {
  const folder = join(out, name);
  const manifest = await readManifest(root, `packages/${from}`);
  const { optionalDependencies = {} } = await readManifest(root, '.'); // Node.js itself
  const isMillrace = name === 'millrace';
  const dependencies = pickVersions(importsOf(metafile), await readWorkspaces(workspaces));
  const published = toPublished(manifest, { dependencies, ...(isMillrace ? { optionalDependencies } : {}) });
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(published, null, 2)}\n`);
  await copyFile(join(root, 'packages', from, 'README.md'), join(folder, 'README.md'));
  await copyFile(join(root, 'LICENSE'), join(folder, 'LICENSE'));
}

function readWorkspaces(names: readonly string[]): Promise<Manifest[]> {
  return Promise.all(names.map((name) => readManifest(root, `packages/${name}`)));
}

/** The npm packages that a bundle imports. */
function importsOf({ outputs }: Metafile): string[] {
  const imports = Object.values(outputs).flatMap((output) => output.imports);
  const names = imports.filter(({ path, external }) => external && !isBuiltin(path)).map(({ path }) => toPackageName(path));
  return [...new Set(names)].sort();
}

/** The npm packages whose code is in a bundle. */
function librariesIn({ inputs }: Metafile): string[] {
  return [...new Set(Object.keys(inputs).flatMap((path) => libraryOf(path) ?? []))].sort();
}

function libraryOf(path: string): string | undefined {
  return path.includes('node_modules/') ? toPackageName(path.split('node_modules/').at(-1) ?? '') : undefined;
}

function toPackageName(path: string): string {
  const parts = path.split('/');
  return parts.slice(0, path.startsWith('@') ? 2 : 1).join('/');
}

async function writeLicenses(path: string, metafiles: readonly Metafile[]): Promise<void> {
  const libraries = [...new Set(metafiles.flatMap(librariesIn))].sort();
  await writeFile(path, (await Promise.all(libraries.map(readLicense))).join('\n\n'));
}

async function readLicense(library: string): Promise<string> {
  const folder = `node_modules/${library}`;
  const { version, license } = await readManifest(root, folder);
  const [file] = globSync('{LICENSE,LICENCE,License,license}*', { cwd: join(root, folder) });
  const text = file === undefined ? '' : `\n${await readFile(join(root, folder, file), 'utf8')}`;
  return `${library} ${version} (${license})\n${text}`;
}

if (import.meta.main) for (const folder of await buildPackages()) console.log(folder);
