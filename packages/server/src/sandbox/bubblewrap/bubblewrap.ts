// The bubblewrap driver: sandboxes with the machine's own programs, for tasks that need no image.

import { join } from 'node:path';
import { blame, definedOf, RolloutError } from '@millrace/protocol';
import type { Log } from '../../base/log.ts';
import { runProgram } from '../../base/run-program.ts';
import { type SandboxConfig, sandboxConfig } from '../config.ts';
import { writeExecutorFiles, writeHiddenProgram } from '../executor/executor-files.ts';
import { openDeviceGuard } from '../launch/device-guard.ts';
import { findDiskAccess, prepareDisk } from '../launch/disk.ts';
import { openSandbox, type SandboxLauncher } from '../launch/open-sandbox.ts';
import { readProcCovers } from '../launch/proc-covers.ts';
import { freezeLayer, refuseLayer } from '../layers/layer.ts';
import { baseEnv, defaultPath } from '../layout.ts';
import { grant, openLimiter } from '../limits/limits.ts';
import { openRunFolder, sweepRunFolder } from '../run-folder/run-folder.ts';
import type { SandboxDriver, SandboxSpec } from '../sandbox.ts';
import { readHostArguments, renderArguments } from './arguments.ts';

export interface BubblewrapOptions {
  /** The run folder, on a local disk and with a short path: it contains sockets. */
  readonly runDir: string;
  /** By default no network, and the default limits in docs/configuration.md. */
  readonly config?: SandboxConfig;
  readonly log: Log;
  readonly bwrapPath?: string;
  readonly nodePath?: string;
}

const helpTimeoutMs = 20_000;

export async function openBubblewrapDriver(options: BubblewrapOptions): Promise<SandboxDriver> {
  const { log, bwrapPath = 'bwrap', config = sandboxConfig.parse({}) } = options;
  const runDir = await openRunFolder(options.runDir);
  const { nodePath: node = process.execPath } = options;
  const executorFiles = await blame('sandbox-start-failed', () => writeExecutorFiles(runDir, node));
  const nodePath = await blame('sandbox-start-failed', () => writeHiddenProgram(node, runDir));
  const etcFiles = join(executorFiles, 'etc');
  const forbidsNamespaces = await canForbidNamespaces(bwrapPath);
  if (!forbidsNamespaces)
    log.warn('namespaces-allowed', {
      message: `${bwrapPath} has no --disable-userns: agents can create user namespaces; install bubblewrap 0.8`,
    });
  const host = { nodePath, executorFiles, etcFiles, system: readHostArguments(), covers: readProcCovers(), forbidsNamespaces };
  const access = await findDiskAccess({ loop: false });
  const launcher: SandboxLauncher = {
    name: 'bubblewrap',
    runDir,
    log,
    limiter: await openLimiter(),
    guardDevices: await openDeviceGuard(),
    isDiskInMemory: true,
    async prepare(spec, folder) {
      // Without a layer, bwrap's own tmpfs is enough.
      const disk = spec.layer !== undefined || spec.isToFreeze ? access : undefined;
      const bwrap = [bwrapPath, ...renderArguments(host, folder, { ...spec, hasDisk: disk !== undefined })];
      const plan = definedOf({ folder, diskMiB: spec.limits.diskMiB, layer: spec.layer });
      const command = disk === undefined ? bwrap : await prepareDisk(disk, plan, bwrap);
      return { holder: { command, reportsPid: true }, env: { PATH: defaultPath, ...baseEnv, ...spec.env } };
    },
  };
  const toGranted = (spec: SandboxSpec) => {
    refuseLayer(spec, access);
    if (spec.image !== undefined) {
      const message = `the task asks for the image ${spec.image}, and bubblewrap cannot run images: set sandbox.driver to apptainer`;
      throw new RolloutError('sandbox-refused', message);
    }
    return { ...spec, ...grant(spec, config) };
  };
  return {
    name: 'bubblewrap',
    open: async (spec, options = {}) => openSandbox(launcher, toGranted(spec), options),
    ...(access && { freeze: async (spec, request) => freezeLayer(launcher, toGranted(spec), { ...request, access, parts: ['home'] }) }),
    sweep: () => sweepRunFolder(runDir),
  };
}

/** A bwrap that cannot run fails when the first sandbox is opened, with its reason. */
async function canForbidNamespaces(bwrapPath: string): Promise<boolean> {
  const help = await runProgram([bwrapPath, '--help'], { timeoutMs: helpTimeoutMs }).catch(() => '');
  return help.includes('--disable-userns');
}
