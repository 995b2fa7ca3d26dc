// The package.json files of the workspace, and the ones that are published in their place. A workspace package runs from its sources and
// cannot be published by accident; its `publishConfig` holds the fields that differ in the build.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

type Versions = Readonly<Record<string, string>>;

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly dependencies?: Versions;
  readonly optionalDependencies?: Versions;
  readonly publishConfig?: { readonly access?: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

/** `folder` is relative to `root`. */
export async function readManifest(root: string, folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(root, folder, 'package.json'), 'utf8'));
}

/** The fields of `publishConfig` replace those of the workspace; dependencies are what the build imports. */
export function toPublished(manifest: Manifest, dependencies: Pick<Manifest, 'dependencies' | 'optionalDependencies'>): Manifest {
  const { private: _private, dependencies: _dependencies, publishConfig = {}, ...kept } = manifest;
  const { access, ...fields } = publishConfig;
  return { ...kept, ...fields, ...dependencies, publishConfig: { ...(access === undefined ? {} : { access }) } };
}

/** The exact version of each name, as one of the manifests declares it. Throws where none does, or two differ. */
export function pickVersions(names: readonly string[], manifests: readonly Manifest[]): Versions {
  return Object.fromEntries(
    names.map((name) => {
      const found = new Set(manifests.flatMap(({ dependencies }) => dependencies?.[name] ?? []));
      const [version] = found;
      if (version === undefined) throw new Error(`${name} is imported, and no package.json of the workspace declares it`);
      if (found.size > 1) throw new Error(`${name} is declared in two versions: ${[...found].join(', ')}`);
      if (!/^\d/.test(version)) throw new Error(`${name} is declared as ${version}, not as an exact version`);
      return [name, version];
    }),
  );
}
