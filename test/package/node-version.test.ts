// One minimum for the Node.js that runs npm: the manifests, the pages and every package that an install brings agree on it, so that npm
// warns about none of them.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { plans } from '../../scripts/build.ts';
import { readManifest } from '../../scripts/manifest.ts';

const root = join(import.meta.dirname, '../..');
/** The minimum that a package.json names. */
async function readMinimum(folder: string): Promise<string> {
  const { node } = (await readManifest(root, folder)).engines as { readonly node: string };
  return /^>=([\d.]+)$/.exec(node)?.[1] ?? assert.fail(`${folder}/package.json: ${node} is not a minimum`);
}

const least = await readMinimum('packages/cli');

interface Locked {
  readonly engines?: { readonly node?: string };
  readonly dependencies?: Readonly<Record<string, string>>;
}

test('the workspace and the pages name the minimum of the millrace package', async () => {
  assert.equal(await readMinimum('.'), least);
  for (const page of ['docs/installation.md', 'packages/cli/README.md'])
    assert.match(await readFile(join(root, page), 'utf8'), new RegExp(`npm with Node\\.js ${least} or later`), page);
});

test('the client and the protocol, which run in the Node.js of the user, name one minimum, and the page says it', async () => {
  const needed = await readMinimum('packages/client');
  assert.equal(await readMinimum('packages/protocol'), needed);
  assert.match(await readFile(join(root, 'packages/client/README.md'), 'utf8'), new RegExp(`Node\\.js ${needed} or later`));
});

test('no package that npm installs with millrace asks for a newer Node.js', async () => {
  const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as { packages: Record<string, Locked> };
  const plan = plans.find(({ name }) => name === 'millrace') ?? assert.fail('there is no plan for millrace');
  const manifests = await Promise.all(plan.workspaces.map((name) => readManifest(root, `packages/${name}`)));
  const own = new Set(['millrace', ...manifests.map(({ name }) => name), ...plan.libraries]);
  const seen = new Set<string>();
  const visit = (name: string, from: string) => {
    const key = findLocked(packages, name, from);
    if (key === undefined || seen.has(key)) return;
    seen.add(key);
    for (const next of Object.keys(packages[key]?.dependencies ?? {})) visit(next, key);
  };
  for (const { dependencies = {} } of manifests) for (const name of Object.keys(dependencies)) if (!own.has(name)) visit(name, '');
  assert.ok(seen.size > 10, 'dependencies were found');
  const newer = [...seen].flatMap((key) => {
    const asked = packages[key]?.engines?.node ?? '*';
    return accepts(asked, Number(least)) ? [] : [`${key} asks for ${asked}`];
  });
  assert.deepEqual(newer, [], 'bundle these: `libraries` in scripts/build.ts');
});

test('every workspace that a published package needs is in its bundle, or is published too', async () => {
  const published = new Set(await Promise.all(plans.map(async ({ from }) => (await readManifest(root, `packages/${from}`)).name)));
  for (const { name, workspaces } of plans) {
    const manifests = await Promise.all(workspaces.map((folder) => readManifest(root, `packages/${folder}`)));
    const bundled = new Set(manifests.map((manifest) => manifest.name));
    const needed = manifests.flatMap(({ dependencies = {} }) => Object.keys(dependencies).filter((one) => one.startsWith('@millrace/')));
    assert.deepEqual(
      needed.filter((one) => !bundled.has(one) && !(published.has(one) && name !== 'millrace')),
      [],
      `${name}: \`workspaces\` in scripts/build.ts`,
    );
  }
});

/** Where Node finds `name` from a package: in its own node_modules, or in one above it. */
function findLocked(packages: Readonly<Record<string, Locked>>, name: string, from: string): string | undefined {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    const key = `${at === '' ? '' : `${at}/`}node_modules/${name}`;
    if (key in packages) return key;
    if (at === '') return undefined;
  }
}

/** Whether one of the alternatives begins at this major version or before it, and has no end. */
function accepts(range: string, major: number): boolean {
  return range.split('||').some((part) => {
    const [, sign = '', from = '0'] = /^\s*(>=|\^|~)?\s*v?(\d+)/.exec(part) ?? [];
    if (part.trim() === '*') return true;
    return sign === '>=' ? Number(from) <= major : Number(from) === major;
  });
}
