// The bubblewrap driver: sandboxes with the machine's own programs, for tasks that need no image.

import { arch } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { findOnPath } from '@millrace/base/find-on-path';
import type { Log } from '@millrace/base/log';
import { runProgram } from '@millrace/base/run-program';
import { blame, definedOf } from '@millrace/protocol';
import { type SandboxConfig, sandboxConfig } from '../config.ts';
import { type ExecutorFiles, findExecutor, writeExecutorFiles } from '../executor/executor-files.ts';
import { grant } from '../grant.ts';
import { type AgentUser, findAgentUser, renderBecome } from '../launch/agent-user.ts';
import { type DeviceGuard, openDeviceGuard } from '../launch/device-guard.ts';
import { findDiskAccess, prepareDisk } from '../launch/disk.ts';
import { openSandbox, type SandboxLauncher } from '../launch/open-sandbox.ts';
import { readOpenProcCovers, readProcCovers } from '../launch/proc-covers.ts';
import { Spawner } from '../launch/spawner.ts';
import { freezeLayer, refuseLayer } from '../layers/layer.ts';
import { baseEnv, defaultPath, home } from '../layout.ts';
import { openLimiter } from '../limits/limits.ts';
import { openRunFolder, sweepRunFolder } from '../run-folder/run-folder.ts';
import type { SandboxDriver, SandboxSpec } from '../sandbox.ts';
import { writePrograms } from '../syscalls/filter-files.ts';
import { readHostArguments, renderArguments, renderTrial } from './arguments.ts';
import { openHostEtc } from './host-etc.ts';

interface BubblewrapOptions {
  /** The run folder, on a local disk and with a short path: it contains sockets. */
  readonly runDir: string;
  /** By default no network, and the default limits in docs/configuration.md. */
  readonly config?: SandboxConfig;
  readonly log: Log;
  readonly bwrapPath?: string;
}

const helpTimeoutMs = 20_000;

export async function openBubblewrapDriver(options: BubblewrapOptions): Promise<SandboxDriver> {
  const { log, bwrapPath = findOnPath(['bwrap']) ?? 'bwrap', config = sandboxConfig.parse({}) } = options;
  const runDir = await openRunFolder(options.runDir);
  const executor = await blame('sandbox-start-failed', () => writeExecutorFiles(runDir));
  const forbidsNamespaces = await canForbidNamespaces(bwrapPath);
  const program = await findExecutor();
  const limiter = await openLimiter({ program, log });
  const filters = await writePrograms(runDir, limiter);
  if (filters === undefined)
    log.warn('system-calls-unfiltered', { message: `there is no filter of system calls for ${arch()}: agents can use all of them` });
  const guard = await openDeviceGuard({ runDir });
  const access = await findDiskAccess({ loop: false });
  const agent = access?.kind === 'user' ? undefined : await openAgentUser(guard, { runDir, bwrapPath, executor, log });
  const toView = (path: string) => viewOf(path, runDir, agent);
  const findEtc = openHostEtc(runDir);
  const isAgentRoot = process.getuid?.() === 0 && agent === undefined;
  const covers = isAgentRoot ? readProcCovers() : readOpenProcCovers();
  const host = { executor: viewExecutor(executor, toView), system: readHostArguments(), covers, forbidsNamespaces };
  const launcher: SandboxLauncher = {
    name: 'bubblewrap',
    runDir,
    log,
    limiter,
    spawner: new Spawner(program),
    guard,
    agent,
    isDiskInMemory: true,
    async prepare(spec, folder) {
      // Without a layer, bwrap's own tmpfs is enough.
      const disk = spec.layer !== undefined || spec.isToFreeze ? access : undefined;
      const view = toView(folder);
      const etc = toView(await findEtc());
      const harness = spec.harness === undefined ? {} : { harness: toView(resolve(spec.harness)) };
      const has = { hasDisk: disk !== undefined, hasFilter: filters !== undefined };
      const args = renderArguments({ ...host, etc }, view, { ...spec, ...harness, ...has });
      const bwrap = [bwrapPath, ...args];
      const plan = definedOf({ folder, view, owner: agent?.uid, diskMiB: spec.limits.diskMiB, layer: spec.layer });
      // Only root can mount the disk, so it becomes the agent's user after that.
      const command = disk && (await prepareDisk(disk, plan, agent ? renderBecome(agent.uid, bwrap) : bwrap));
      const uid = disk === undefined ? agent?.uid : undefined;
      const holder = definedOf({ command: command ?? bwrap, reportsPid: true, filter: filters?.[spec.namespaces], uid });
      return { holder, env: { PATH: defaultPath, ...baseEnv, ...spec.env } };
    },
  };
  const toGranted = (spec: SandboxSpec) => {
    refuseLayer(spec, access);
    return { ...spec, ...grant(spec, { ...config, driver: 'bubblewrap' }) };
  };
  return {
    name: 'bubblewrap',
    writable: [home, '/tmp', '/dev/shm'],
    open: async (spec, options = {}) => openSandbox(launcher, toGranted(spec), options),
    ...(access && { freeze: async (spec, request) => freezeLayer(launcher, toGranted(spec), { ...request, access, parts: ['home'] }) }),
    sweep: () => sweepRunFolder(runDir),
  };
}

interface AgentUserOptions {
  readonly runDir: string;
  readonly bwrapPath: string;
  readonly executor: ExecutorFiles;
  readonly log: Log;
}

async function openAgentUser(guard: DeviceGuard, options: AgentUserOptions): Promise<AgentUser | undefined> {
  const { runDir, bwrapPath, executor, log } = options;
  if (process.getuid?.() !== 0) return undefined;
  await runProgram(['chmod', '-R', 'a+rX', '--', executor.folder]);
  const user = await findAgentUser(guard, runDir, (found) => [
    bwrapPath,
    ...renderTrial(viewExecutor(executor, (path) => viewOf(path, runDir, found))),
  ]);
  if (user === undefined) {
    const message = 'sandboxes cannot be started as another user: agents are the root user of this machine, without capabilities';
    log.warn('agents-are-root', { message });
  }
  return user;
}

function viewExecutor({ program, folder }: ExecutorFiles, toView: (path: string) => string): ExecutorFiles {
  return { program: toView(program), folder: toView(folder) };
}

function viewOf(path: string, runDir: string, agent: AgentUser | undefined): string {
  return agent && path.startsWith(`${runDir}/`) ? join(agent.runDir, relative(runDir, path)) : path;
}

/** A bwrap that cannot run fails when the first sandbox is opened, with its reason. */
async function canForbidNamespaces(bwrapPath: string): Promise<boolean> {
  const help = await runProgram([bwrapPath, '--help'], { timeoutMs: helpTimeoutMs }).catch(() => '');
  return help.includes('--disable-userns');
}
