// The kinds of images that a task may name, and how Apptainer builds them. A SIF file and an unpacked directory are used in place. All
// others are first converted to an unpacked directory, which starts faster than a SIF file and needs no FUSE.

import { readFile, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { RolloutError } from '@millrace/protocol';
import { hashContent } from '../run-folder/make-once.ts';
import { isLocalImage, keyOfDockerfile } from './dockerfile/dockerfile-key.ts';

export type ImageSource =
  | { readonly kind: 'local'; readonly path: string }
  /** `key` changes with the content if that can be known: the text of a definition file, the size and time of an archive. */
  | { readonly kind: 'built' | 'dockerfile'; readonly source: string; readonly key: string };

const remote = /^(docker|oras|library|shub|https?):\/\/\S+$/;
const archive = /^(docker-archive|oci-archive):(?:\/\/)?(.+)$/;
const dockerfile = /(^|\/)(Dockerfile(\.[^/]+)?|[^/]+\.Dockerfile)$/;

export async function toImageSource(name: string): Promise<ImageSource> {
  if (remote.test(name)) return { kind: 'built', source: name, key: hashContent([name]) };
  const { path, scheme } = toFile(name);
  const found = await stat(path).catch(() => undefined);
  if (!found) throw new RolloutError('sandbox-refused', renderMissing(path));
  if (scheme !== undefined) {
    const source = `${scheme}:${path}`;
    return { kind: 'built', source, key: hashContent([source, found.size, found.mtimeMs]) };
  }
  if (found.isFile() && path.endsWith('.def'))
    return { kind: 'built', source: path, key: hashContent([path, await readFile(path, 'utf8')]) };
  if (found.isFile() && dockerfile.test(path)) return { kind: 'dockerfile', source: path, key: await keyOfDockerfile(path) };
  return { kind: 'local', path };
}

/** Says so if the image is a file or a folder that does not exist here. Whether a registry has an image is not asked. */
export async function findMissingImage(name: string): Promise<string | undefined> {
  if (remote.test(name)) return undefined;
  const { path } = toFile(name);
  return (await stat(path).catch(() => undefined)) ? undefined : renderMissing(path);
}

function toFile(name: string): { readonly path: string; readonly scheme: string | undefined } {
  const [, scheme, file] = archive.exec(name) ?? [];
  return { path: resolve(file ?? name), scheme };
}

function renderMissing(path: string): string {
  const known = 'use a SIF file, an unpacked directory, docker://…, docker-archive:FILE, a Dockerfile or a definition file (.def)';
  return `there is no image ${path}: ${known}`;
}

/** Names of images, or their beginnings with a star at the end, and what is used in their place: `{ "python:*": "docker://registry:5000/python:*" }`. */
export type ImageNames = Readonly<Record<string, string>>;

/** The image of a FROM: a path relative to the Dockerfile, or a name as in Docker. */
export function toBaseName(name: string, dockerfilePath: string): string {
  if (isLocalImage(name)) return resolve(dirname(dockerfilePath), name);
  return remote.test(name) || archive.test(name) ? name : `docker://${name}`;
}

/** The name that the configuration puts in the place of a Docker image; the longest that fits counts. */
export function replaceName(name: string, names: ImageNames = {}): string {
  const [, short] = /^docker:\/\/(.+)$/.exec(name) ?? [];
  if (short === undefined) return name;
  const [found] = Object.keys(names)
    .filter((key) => (key.endsWith('*') ? short.startsWith(key.slice(0, -1)) : short === key))
    .sort((a, b) => b.length - a.length);
  const put = found === undefined ? undefined : names[found];
  if (found === undefined || put === undefined) return name;
  return put.endsWith('*') ? put.slice(0, -1) + short.slice(found.replace(/\*$/, '').length) : put;
}

/** A registry on this machine has no certificate, as for Docker. */
const loopback = /^docker:\/\/(localhost|127\.\d+\.\d+\.\d+)(:\d+)?\//;

export function renderBuildArguments(source: string, target: string): string[] {
  return ['--nocolor', 'build', '--sandbox', '--force', ...(loopback.test(source) ? ['--no-https'] : []), target, source];
}

/** Adds to Apptainer's error what to do about it. */
export function renderBuildError(source: string, output: string): string {
  const advice = [
    [
      /no such host|dial tcp|connection refused|i\/o timeout/i,
      'this machine cannot reach the registry: pull the image elsewhere and copy the file here',
    ],
    [/unauthorized|denied|authentication/i, 'the registry requires a login (apptainer registry login), or the name is wrong'],
    [/manifest unknown|not found/i, 'the registry has no such image or tag'],
    [/capability set/i, 'root lacks a capability that %post needs: build it as an ordinary user'],
    [/no space left/i, 'the disk of the image cache is full: use millrace image rm, or set `sandbox.images` to another disk'],
  ].find(([pattern]) => (pattern as RegExp).test(output))?.[1];
  const lines = output.trim().split('\n');
  const last =
    lines
      .filter((line) => !line.startsWith('INFO:'))
      .slice(-3)
      .join(' ') || lines.at(-1);
  return `the image ${source} could not be built: ${last}${advice === undefined ? '' : ` (${advice})`}`;
}
