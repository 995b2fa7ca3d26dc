// The Apptainer driver: a sandbox from an image, for root and for ordinary users. One `apptainer exec` holds a sandbox for its whole
// life; tool calls go to the executor inside it.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { RolloutError } from '@millrace/protocol';
import { type Log, silentLog } from '../base/log.ts';
import { renderApptainerArguments } from './apptainer-arguments.ts';
import { findApptainer } from './apptainer-program.ts';
import { type SandboxConfig, sandboxConfig } from './config.ts';
import { openDeviceGuard } from './device-guard.ts';
import { writeExecutorFiles } from './executor-files.ts';
import type { ImageCache, ImageLease } from './image-cache.ts';
import { toImageSource } from './image-source.ts';
import { baseEnv, defaultPath } from './layout.ts';
import { grant, openLimiter } from './limits.ts';
import { writeNodeLibraries } from './node-libraries.ts';
import { openRunDir, openSandbox, type SandboxLauncher } from './open-sandbox.ts';
import { sweepOrphans } from './orphans.ts';
import { readProcCovers } from './proc-covers.ts';
import type { SandboxDriver } from './sandbox.ts';

export interface ApptainerOptions {
  /** On a disk of this machine, with a short path: sockets and writable layers are in it. */
  readonly runDir: string;
  /** By default no network, and the limits that docs/configuration.md names; nothing keeps `diskMiB` here. */
  readonly config?: SandboxConfig;
  readonly log?: Log;
  /** By default `apptainer`, or `singularity` where that is its name. */
  readonly apptainerPath?: string;
  readonly nodePath?: string;
  /** Makes what is neither a SIF file nor an unpacked directory; without it, only those two are run. */
  readonly images?: ImageCache;
}

export async function openApptainerDriver(options: ApptainerOptions): Promise<SandboxDriver> {
  const { log = silentLog, apptainerPath = findApptainer() ?? 'apptainer', nodePath = process.execPath } = options;
  const { config = sandboxConfig.parse({}) } = options;
  const runDir = await openRunDir(options.runDir);
  for (const path of [runDir, nodePath]) refuseSeparators(path);
  const executorFiles = await writeExecutorFiles(runDir);
  const libraries = await writeNodeLibraries(runDir, nodePath, executorFiles).catch((error: Error) => {
    throw new RolloutError('sandbox-start-failed', `the libraries of ${nodePath} could not be found: ${error.message}`, { cause: error });
  });
  const covers = process.getuid?.() === 0 ? readProcCovers() : [];
  const host = { nodePath, executorFiles, libraries, covers };
  const launcher: SandboxLauncher = {
    name: 'apptainer',
    runDir,
    log,
    limiter: await openLimiter(),
    guardDevices: await openDeviceGuard(),
    isDiskInMemory: false,
    async prepare(spec, folder, signal) {
      const image = await openImage(spec.image, { ...options, signal });
      for (const part of ['own', 'workspace', 'overlay', 'scratch']) await mkdir(join(folder, part));
      const env = { PATH: process.env.PATH ?? defaultPath };
      const args = renderApptainerArguments(host, folder, { image: image.path, network: spec.network });
      const holder = { command: [apptainerPath, ...args], env, tellsInside: false };
      return { holder, env: { ...baseEnv, ...spec.env }, release: () => image[Symbol.asyncDispose]() };
    },
  };
  return {
    name: 'apptainer',
    open: async (spec, options = {}) => openSandbox(launcher, { ...spec, ...grant(spec, config) }, options),
    sweep: () => sweepOrphans(runDir),
  };
}

interface ImageOptions {
  readonly images?: ImageCache;
  readonly signal: AbortSignal | undefined;
}

async function openImage(name: string | undefined, { images, signal }: ImageOptions): Promise<ImageLease> {
  if (name === undefined) throw new RolloutError('sandbox-refused', 'the task names no image, and Apptainer runs nothing else');
  if (images) return images.open(name, signal === undefined ? {} : { signal });
  const image = await toImageSource(name);
  if (image.kind === 'local') return { path: image.path, [Symbol.asyncDispose]: async () => {} };
  throw new RolloutError(
    'sandbox-refused',
    `the image ${name} must be made first, and there is no image cache: millrace image build ${name}`,
  );
}

function refuseSeparators(path: string): void {
  if (!/[:,]/.test(path)) return;
  throw new RolloutError('sandbox-start-failed', `${path} has a colon or a comma in it, which Apptainer takes for the end of a path`);
}
