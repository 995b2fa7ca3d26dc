// A Harbor task folder: task.toml, instruction.md, environment/, tests/ and solution/. It is read as it is; a folder that cannot be run here
// is refused with the file and the reason.

import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { basename, join, posix, relative, resolve } from 'node:path';
import { definedOf, messageOf } from '@millrace/protocol';
import { digestFolder, expandWord, parseDockerfile } from '@millrace/sandbox';
import { parseTaskToml, readMode, type TaskToml } from './task-toml.ts';

export interface TaskFolder {
  readonly path: string;
  /** `org/name` of task.toml, or the name of the folder. */
  readonly name: string;
  readonly instruction: string;
  readonly toml: TaskToml;
  readonly mode: 'shared' | 'separate';
  readonly environment: EnvironmentImage;
  /** The image of a separate verifier. `hasTests`: its /tests is part of the image. */
  readonly verifier: EnvironmentImage & { readonly hasTests: boolean };
  readonly hasSolution: boolean;
}

export interface EnvironmentImage {
  /** A Dockerfile, or the name of a Docker image. */
  readonly image: string;
  readonly workdir: string;
  /** The home folder of the user that the image names. */
  readonly home: string;
}

/** Throws an Error whose message starts with a file of the folder. */
export async function readTaskFolder(folder: string): Promise<TaskFolder> {
  const path = resolve(folder);
  const read = (name: string) =>
    readFile(join(path, name), 'utf8').catch((error) => Promise.reject(new Error(`${name}: ${toReason(error)}`)));
  const toml = parseTaskToml(await read('task.toml'));
  const instruction = withoutCanary(await read('instruction.md')).trim();
  if (instruction === '') throw new Error('instruction.md: it is empty');
  for (const name of ['environment', 'tests', 'solution']) await refuseLinksOut(join(path, name), path);
  const mode = readMode(toml);
  const environment = await findImage(path, 'environment', toml.environment);
  if (environment === undefined) throw new Error('environment/Dockerfile: there is none, and task.toml has no environment.docker_image');
  const own = mode === 'separate' ? await findImage(path, 'tests', toml.verifier.environment ?? {}) : undefined;
  const verifier = own ? { ...own, hasTests: true } : { ...environment, hasTests: false };
  if (!verifier.hasTests && !(await isFile(join(path, 'tests/test.sh')))) throw new Error('tests/test.sh: there is none');
  const name = toml.task?.name ?? basename(path);
  return { path, name, instruction, toml, mode, environment, verifier, hasSolution: await isFile(join(path, 'solution/solve.sh')) };
}

/** Data sets mark their files against training on them, in comments at the beginning. The agent does not see the mark. */
function withoutCanary(text: string): string {
  const lines = text.split('\n');
  const isMark = (line: string) => /^#|^<!--.*-->$/.test(line) && line.toLowerCase().includes('canary');
  const first = lines.findIndex((line) => !isMark(line.trim()));
  return lines.slice(first < 0 ? lines.length : first).join('\n');
}

/** A hash of everything in the folder: what was submitted is what is run. */
export function digestTask(folder: string): Promise<string> {
  return digestFolder(resolve(folder));
}

/** The folders with a task.toml: the path itself, or folders in it at any depth. In the order of their names. */
export async function findTaskFolders(path: string): Promise<string[]> {
  if (await isFile(join(path, 'task.toml'))) return [path];
  const entries = await readdir(path, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules');
  const found: string[] = [];
  for (const { name } of folders.sort((a, b) => (a.name < b.name ? -1 : 1))) found.push(...(await findTaskFolders(join(path, name))));
  return found;
}

interface ImageFields {
  readonly docker_image?: string | undefined;
  readonly workdir?: string | undefined;
}

/** An image that task.toml names comes before the Dockerfile, which then only tells the working directory. */
async function findImage(path: string, folder: string, fields: ImageFields): Promise<EnvironmentImage | undefined> {
  if (await isFile(join(path, folder, 'docker-compose.yaml')))
    throw new Error(`${folder}/docker-compose.yaml: several services cannot be run here`);
  const file = join(path, folder, 'Dockerfile');
  const text = await readFile(file, 'utf8').catch(() => undefined); // there is none
  if (text === undefined && fields.docker_image === undefined) return undefined;
  const facts = text === undefined ? {} : readUse(text, `${folder}/Dockerfile`);
  const image = fields.docker_image === undefined ? file : `docker://${fields.docker_image}`;
  return { image, workdir: fields.workdir ?? facts.workdir ?? '/', home: facts.home ?? '/root' };
}

/** WORKDIR and USER of the last stage. Throws an error with file and line for a Dockerfile that cannot be built. */
function readUse(text: string, path: string): { workdir?: string; home?: string } {
  const variables: Record<string, string> = {};
  let workdir: string | undefined;
  let home: string | undefined;
  for (const { name, text: argument } of parseDockerfile(text, path)) {
    if (name === 'FROM') [workdir, home] = [undefined, undefined];
    for (const [, key = '', value = ''] of name === 'ENV' || name === 'ARG' ? argument.matchAll(/(\w+)=("[^"]*"|\S*)/g) : [])
      variables[key] = expandWord(value, variables);
    if (name === 'WORKDIR') workdir = posix.resolve(workdir ?? '/', expandWord(argument, variables));
    if (name === 'USER') home = toHome(expandWord(argument, variables).split(':')[0] ?? '');
  }
  return definedOf({ workdir, home: variables.HOME ?? home });
}

function toHome(user: string): string {
  return user === '' || user === 'root' || user === '0' ? '/root' : `/home/${user}`;
}

/** Files of this machine must not get into a sandbox through a link of a data set. */
async function refuseLinksOut(folder: string, root: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []); // there is no such folder
  for (const entry of entries) {
    if (!entry.isSymbolicLink()) continue;
    const link = join(entry.parentPath, entry.name);
    const target = await realpath(link).catch(() => undefined); // it points to a path of the image, or to nothing
    if (target !== undefined && relative(await realpath(root), target).startsWith('..'))
      throw new Error(`${relative(root, link)}: it is a link to ${target}, outside of the task's folder`);
  }
}

async function isFile(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined); // it does not exist
  return found?.isFile() ?? false;
}

function toReason(error: unknown): string {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT' ? 'there is no such file' : messageOf(error);
}
