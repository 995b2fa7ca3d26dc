// The Apptainer driver: a sandbox from an image, for root and for ordinary users. One `apptainer exec` holds a sandbox for its whole
// life; tool calls go to the executor inside it.

import { existsSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { delimiter, join, resolve } from 'node:path';
import { RolloutError } from '@millrace/protocol';
import { type Log, silentLog } from '../base/log.ts';
import { renderApptainerArguments } from './apptainer-arguments.ts';
import { writeExecutorFiles } from './executor-files.ts';
import { baseEnv, defaultPath, kernelSettings } from './layout.ts';
import { writeNodeLibraries } from './node-libraries.ts';
import { openRunDir, openSandbox, type SandboxLauncher } from './open-sandbox.ts';
import { sweepOrphans } from './orphans.ts';
import type { SandboxDriver } from './sandbox.ts';

export interface ApptainerOptions {
  /** On a disk of this machine, with a short path: sockets and writable layers are in it. */
  readonly runDir: string;
  readonly log?: Log;
  /** By default `apptainer`, or `singularity` where that is its name. */
  readonly apptainerPath?: string;
  readonly nodePath?: string;
}

export async function openApptainerDriver(options: ApptainerOptions): Promise<SandboxDriver> {
  const { log = silentLog, apptainerPath = findApptainer() ?? 'apptainer', nodePath = process.execPath } = options;
  const runDir = await openRunDir(options.runDir);
  for (const path of [runDir, nodePath]) refuseSeparators(path);
  const executorFiles = await writeExecutorFiles(runDir);
  const libraries = await writeNodeLibraries(runDir, nodePath, executorFiles).catch((error: Error) => {
    throw new RolloutError('sandbox-start-failed', `the libraries of ${nodePath} could not be found: ${error.message}`, { cause: error });
  });
  const covered = process.getuid?.() === 0 ? kernelSettings.filter((path) => existsSync(path)) : [];
  const host = { nodePath, executorFiles, libraries, covered };
  const launcher: SandboxLauncher = {
    name: 'apptainer',
    runDir,
    log,
    async prepare(spec, folder) {
      const image = await checkImage(spec.image);
      for (const part of ['overlay', 'scratch']) await mkdir(join(folder, part));
      const env = { PATH: process.env.PATH ?? defaultPath };
      const holder = { file: apptainerPath, args: renderApptainerArguments(host, image, folder), env, tellsInside: false };
      return { holder, env: { ...baseEnv, ...spec.env } };
    },
  };
  return {
    name: 'apptainer',
    open: (spec, { signal } = {}) => openSandbox(launcher, spec, signal),
    sweep: () => sweepOrphans(runDir),
  };
}

/** The program's whole path; absent where there is none. */
export function findApptainer(path = process.env.PATH ?? ''): string | undefined {
  const folders = path.split(delimiter).filter(Boolean);
  return ['apptainer', 'singularity'].flatMap((name) => folders.map((folder) => join(folder, name))).find((file) => existsSync(file));
}

async function checkImage(image: string | undefined): Promise<string> {
  if (image === undefined) throw new RolloutError('sandbox-refused', 'the task names no image, and Apptainer runs nothing else');
  const path = resolve(image);
  if (await stat(path).catch(() => undefined)) return path;
  throw new RolloutError('sandbox-refused', `there is no image ${path}: a task names a SIF file or an unpacked directory`);
}

function refuseSeparators(path: string): void {
  if (!/[:,]/.test(path)) return;
  throw new RolloutError('sandbox-start-failed', `${path} has a colon or a comma in it, which Apptainer takes for the end of a path`);
}
