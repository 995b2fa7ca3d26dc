// The Apptainer driver: sandboxes from images, for root and for ordinary users. One `apptainer exec` holds a sandbox for its whole life,
// and tool calls go to the executor inside it.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '@millrace/base/log';
import { blame, definedOf, RolloutError } from '@millrace/protocol';
import { type SandboxConfig, sandboxConfig } from '../config.ts';
import { findExecutor, writeExecutorFiles } from '../executor/executor-files.ts';
import { grant } from '../grant.ts';
import { findApptainer } from '../images/apptainer-program.ts';
import type { ImageCache, ImageLease } from '../images/image-cache.ts';
import { toImageSource } from '../images/image-source.ts';
import { openDeviceGuard } from '../launch/device-guard.ts';
import { type DiskPlan, findDiskAccess, makeDiskTemplate, prepareDisk, refuseSeparators } from '../launch/disk.ts';
import { openSandbox, type SandboxLauncher } from '../launch/open-sandbox.ts';
import { readKeyCovers, readProcCovers } from '../launch/proc-covers.ts';
import { Spawner } from '../launch/spawner.ts';
import { freezeLayer, refuseLayer } from '../layers/layer.ts';
import { baseEnv, defaultPath, executorFolderMiB } from '../layout.ts';
import { openLimiter } from '../limits/limits.ts';
import { openRunFolder, sweepRunFolder } from '../run-folder/run-folder.ts';
import type { SandboxDriver, SandboxSpec } from '../sandbox.ts';
import { renderApptainerArguments, tmpfsFolders } from './arguments.ts';
import { isStackable, writeSkeleton } from './root-skeleton.ts';
import { writeSyscallFilter } from './syscall-filter.ts';

interface ApptainerOptions {
  /** The run folder, on a local disk and with a short path: it contains sockets and writable layers. */
  readonly runDir: string;
  /** By default no network, and the default limits in docs/configuration.md. */
  readonly config?: SandboxConfig;
  readonly log: Log;
  /** By default `apptainer`, or `singularity` if that is its name. */
  readonly apptainerPath?: string;
  /** Converts images that are neither SIF files nor unpacked directories. Without it, only those two can be used. */
  readonly images?: Pick<ImageCache, 'open'>;
}

export async function openApptainerDriver(options: ApptainerOptions): Promise<SandboxDriver> {
  const { log, apptainerPath = findApptainer() ?? 'apptainer', config = sandboxConfig.parse({}) } = options;
  const runDir = await openRunFolder(options.runDir);
  refuseSeparators(runDir);
  const executor = await blame('sandbox-start-failed', () => writeExecutorFiles(runDir));
  const access = await findDiskAccess({ loop: true });
  if (access === undefined)
    log.warn('disk-unbounded', { message: 'this process cannot mount file systems: diskMiB is not enforced, and layers are disabled' });
  const skeleton = await writeSkeleton(runDir);
  const covers = process.getuid?.() === 0 ? readProcCovers() : readKeyCovers();
  const program = await findExecutor();
  const limiter = await openLimiter({ program, log });
  const filters = await writeSyscallFilter(runDir, { apptainerPath, log, isMemoryBounded: limiter.isMemoryBounded });
  const host = definedOf({ executor, covers, filters });
  const launcher: SandboxLauncher = {
    name: 'apptainer',
    runDir,
    log,
    limiter,
    ...{ spawner: new Spawner(program), guard: await openDeviceGuard() },
    isDiskInMemory: access !== undefined && !access.hasLoop,
    async prepare(spec, folder, signal) {
      await using stack = new AsyncDisposableStack(); // released if a later step fails
      const image = stack.use(await openImage(spec.image, { ...options, signal }));
      const { network, namespaces, layer, harness, limits } = spec;
      const hasRoot = access?.hasOverlay === true && (await isStackable(image.path));
      const choice = definedOf({ image: image.path, network, namespaces, hasRoot, hasDisk: access !== undefined, layer, harness });
      const apptainer = [apptainerPath, ...renderApptainerArguments(host, folder, choice)];
      const plan: DiskPlan = definedOf({
        folder,
        diskMiB: limits.diskMiB,
        tmpfsMiB: { [tmpfsFolders.own]: executorFolderMiB, [tmpfsFolders.shm]: Math.floor(limits.memoryMiB / 4) },
        template: access?.hasLoop ? await makeDiskTemplate(runDir, limits.diskMiB) : undefined,
        layer,
        root: hasRoot ? [...(layer === undefined ? [] : [`${layer}/root/upper`]), image.path, skeleton] : undefined,
      });
      const command = access === undefined ? apptainer : await prepareDisk(access, plan, apptainer);
      if (access === undefined)
        for (const part of ['own', 'disk/home', 'disk/root', 'disk/scratch']) await mkdir(join(folder, part), { recursive: true });
      // Apptainer's command line runs for 20 ms: garbage collection, which it would do twice, only delays it.
      const holder = { command, env: { PATH: process.env.PATH ?? defaultPath, GOGC: 'off' }, reportsPid: false };
      const kept = stack.move();
      return { holder, env: { ...baseEnv, ...spec.env }, release: () => kept.disposeAsync() };
    },
  };
  const toGranted = (spec: SandboxSpec) => {
    refuseLayer(spec, access);
    const image = spec.image ?? config.image;
    return { ...spec, ...grant(spec, { ...config, driver: 'apptainer' }), ...definedOf({ image }) };
  };
  return {
    name: 'apptainer',
    open: async (spec, options = {}) => openSandbox(launcher, toGranted(spec), options),
    ...(access && {
      freeze: async (spec, request) => freezeLayer(launcher, toGranted(spec), { ...request, access, parts: ['home', 'root/upper'] }),
    }),
    sweep: () => sweepRunFolder(runDir),
  };
}

interface ImageOptions {
  readonly images?: Pick<ImageCache, 'open'>;
  readonly signal: AbortSignal | undefined;
}

async function openImage(name: string | undefined, { images, signal }: ImageOptions): Promise<ImageLease> {
  if (name === undefined)
    throw new RolloutError('sandbox-refused', 'the task names no image, and sandbox.image is not set: set one of them');
  if (images) return images.open(name, definedOf({ signal }));
  const image = await toImageSource(name);
  if (image.kind === 'local') return { path: image.path, [Symbol.asyncDispose]: async () => {} };
  throw new RolloutError(
    'sandbox-refused',
    `the image ${name} must be built first, and there is no image cache: millrace image build ${name}`,
  );
}
