// The Apptainer driver: a sandbox from an image, for root and for ordinary users. One `apptainer exec` holds a sandbox for its whole
// life; tool calls go to the executor inside it.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { blame, RolloutError } from '@millrace/protocol';
import { type Log, silentLog } from '../../base/log.ts';
import { type SandboxConfig, sandboxConfig } from '../config.ts';
import { writeExecutorFiles } from '../executor/executor-files.ts';
import { findApptainer } from '../images/apptainer-program.ts';
import type { ImageCache, ImageLease } from '../images/image-cache.ts';
import { toImageSource } from '../images/image-source.ts';
import { openDeviceGuard } from '../launch/device-guard.ts';
import { type DiskPlan, findDiskAccess, makeDiskTemplate, prepareDisk, refuseSeparators } from '../launch/disk.ts';
import { writeNodeLibraries } from '../launch/node-libraries.ts';
import { openRunDir, openSandbox, type SandboxLauncher } from '../launch/open-sandbox.ts';
import { readProcCovers } from '../launch/proc-covers.ts';
import { freezeLayer, refuseLayer } from '../layers/layer.ts';
import { baseEnv, defaultPath, ownMiB } from '../layout.ts';
import { grant, openLimiter } from '../limits/limits.ts';
import { sweepOrphans } from '../run-folder/run-folder.ts';
import type { SandboxDriver, SandboxSpec } from '../sandbox.ts';
import { beside, renderApptainerArguments } from './arguments.ts';
import { isStackable, writeSkeleton } from './root-skeleton.ts';

export interface ApptainerOptions {
  /** On a disk of this machine, with a short path: sockets and writable layers are in it. */
  readonly runDir: string;
  /** By default no network, and the limits that docs/configuration.md names. */
  readonly config?: SandboxConfig;
  readonly log?: Log;
  /** By default `apptainer`, or `singularity` where that is its name. */
  readonly apptainerPath?: string;
  readonly nodePath?: string;
  /** Makes what is neither a SIF file nor an unpacked directory; without it, only those two are run. */
  readonly images?: Pick<ImageCache, 'open'>;
}

export async function openApptainerDriver(options: ApptainerOptions): Promise<SandboxDriver> {
  const { log = silentLog, apptainerPath = findApptainer() ?? 'apptainer', nodePath = process.execPath } = options;
  const { config = sandboxConfig.parse({}) } = options;
  const runDir = await openRunDir(options.runDir);
  for (const path of [runDir, nodePath]) refuseSeparators(path);
  const executorFiles = await blame('sandbox-start-failed', () => writeExecutorFiles(runDir, nodePath));
  const libraries = await writeNodeLibraries(runDir, nodePath, executorFiles).catch((error: Error) => {
    throw new RolloutError('sandbox-start-failed', `the libraries of ${nodePath} could not be found: ${error.message}`, { cause: error });
  });
  const access = await findDiskAccess({ loop: true });
  if (access === undefined)
    log.warn('disk-unbounded', { message: 'this machine gives no mounts: nothing keeps diskMiB, and nothing is forked' });
  const skeleton = await writeSkeleton(runDir);
  const covers = process.getuid?.() === 0 ? readProcCovers() : [];
  const host = { nodePath, executorFiles, libraries, covers };
  const launcher: SandboxLauncher = {
    name: 'apptainer',
    runDir,
    log,
    limiter: await openLimiter(),
    guardDevices: await openDeviceGuard(),
    isDiskInMemory: access !== undefined && !access.hasLoop,
    async prepare(spec, folder, signal) {
      await using stack = new AsyncDisposableStack(); // given back where what follows fails
      const image = stack.use(await openImage(spec.image, { ...options, signal }));
      const { network, layer, limits } = spec;
      const hasRoot = access?.hasOverlay === true && (await isStackable(image.path));
      const choice = { image: image.path, network, hasRoot, hasDisk: access !== undefined, ...(layer === undefined ? {} : { layer }) };
      const apptainer = [apptainerPath, ...renderApptainerArguments(host, folder, choice)];
      const plan: DiskPlan = {
        folder,
        diskMiB: limits.diskMiB,
        besideMiB: { [beside.own]: ownMiB, [beside.shm]: Math.floor(limits.memoryMiB / 4) },
        ...(access?.hasLoop ? { template: await makeDiskTemplate(runDir, limits.diskMiB) } : {}),
        ...(layer === undefined ? {} : { layer }),
        ...(hasRoot ? { root: [...(layer === undefined ? [] : [`${layer}/root/upper`]), image.path, skeleton] } : {}),
      };
      const command = access === undefined ? apptainer : await prepareDisk(access, plan, apptainer);
      if (access === undefined)
        for (const part of ['own', 'disk/home', 'disk/root', 'disk/scratch']) await mkdir(join(folder, part), { recursive: true });
      // For Apptainer's command line, which is over in 20 ms and would collect its garbage twice.
      const holder = { command, env: { PATH: process.env.PATH ?? defaultPath, GOGC: 'off' }, tellsInside: false };
      const kept = stack.move();
      return { holder, env: { ...baseEnv, ...spec.env }, release: () => kept.disposeAsync() };
    },
  };
  const toGranted = (spec: SandboxSpec) => {
    refuseLayer(spec, access);
    const image = spec.image ?? config.image;
    return { ...spec, ...grant(spec, config), ...(image === undefined ? {} : { image }) };
  };
  return {
    name: 'apptainer',
    open: async (spec, options = {}) => openSandbox(launcher, toGranted(spec), options),
    ...(access && {
      freeze: async (spec, request) => freezeLayer(launcher, toGranted(spec), { ...request, access, parts: ['home', 'root/upper'] }),
    }),
    sweep: () => sweepOrphans(runDir),
  };
}

interface ImageOptions {
  readonly images?: Pick<ImageCache, 'open'>;
  readonly signal: AbortSignal | undefined;
}

async function openImage(name: string | undefined, { images, signal }: ImageOptions): Promise<ImageLease> {
  if (name === undefined)
    throw new RolloutError('sandbox-refused', 'the task names no image, and sandbox.image names none for it: set either');
  if (images) return images.open(name, signal === undefined ? {} : { signal });
  const image = await toImageSource(name);
  if (image.kind === 'local') return { path: image.path, [Symbol.asyncDispose]: async () => {} };
  throw new RolloutError(
    'sandbox-refused',
    `the image ${name} must be made first, and there is no image cache: millrace image build ${name}`,
  );
}
