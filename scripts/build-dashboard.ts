// Builds the dashboard's pages, by default into packages/dashboard/dist. Takes a few seconds, and nothing if the sources have not changed.

import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const dashboard = join(import.meta.dirname, '../packages/dashboard');
const stampName = '.sources';

/** `folder` gets a copy of the build. */
export async function buildDashboard(folder?: string): Promise<void> {
  const dist = join(dashboard, 'dist');
  const stamp = hashSources();
  const built = await readFile(join(dist, stampName), 'utf8').catch(() => ''); // the first build finds none
  if (built !== stamp) await bundle(dist, stamp);
  if (folder === undefined) return;
  await rm(folder, { recursive: true, force: true });
  await cp(dist, folder, { recursive: true, filter: (path) => !path.endsWith(stampName) });
}

/** Into another folder first: a build that fails leaves the one before, and two at once do not mix. */
async function bundle(dist: string, stamp: string): Promise<void> {
  const { version } = JSON.parse(await readFile(join(dashboard, 'package.json'), 'utf8'));
  const { build } = await import('vite'); // it takes longer to load than a build that is not needed
  const scratch = `${dist}.${process.pid}`;
  try {
    await build({
      root: dashboard,
      configFile: false,
      logLevel: 'error',
      define: { 'process.env.NODE_ENV': '"production"', millraceVersion: JSON.stringify(version) },
      build: {
        outDir: scratch,
        emptyOutDir: true,
        target: 'es2023',
        modulePreload: { polyfill: false },
        assetsInlineLimit: 0,
        reportCompressedSize: false,
      },
    });
    await mkdir(scratch, { recursive: true });
    await writeFile(join(scratch, stampName), stamp);
    await rm(dist, { recursive: true, force: true });
    await rename(scratch, dist);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function hashSources(): string {
  const files = globSync(['src/**/*', 'public/**/*', 'index.html', 'package.json', 'tsconfig.json'], {
    cwd: dashboard,
    withFileTypes: true,
  })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  const hash = createHash('sha256');
  for (const file of [import.meta.filename, ...files]) hash.update(`${file.slice(dashboard.length)}\n`).update(readFileSync(file));
  return hash.digest('hex');
}

if (import.meta.main) await buildDashboard();
