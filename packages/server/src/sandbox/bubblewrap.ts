// The bubblewrap driver: a sandbox from the machine's own programs, for tasks that need no image. A sandbox is written down before it
// starts, is ready when its executor says so, and ends with its worker, however the worker ends.

import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join, resolve } from 'node:path';
import { blame, RolloutError, type SandboxId } from '@millrace/protocol';
import { systemClock } from '../base/clock.ts';
import { type Log, silentLog } from '../base/log.ts';
import { baseEnv, readHostArguments, readProcArguments, renderArguments, type SandboxHost } from './bubblewrap-arguments.ts';
import { type SandboxConfig, sandboxConfig } from './config.ts';
import { ExecutorClient } from './executor-client.ts';
import { writeExecutorFiles, writeHiddenProgram } from './executor-files.ts';
import { toSandbox } from './executor-sandbox.ts';
import { type AgentEnd, type Confinement, type Granted, grant, type Limiter, openLimiter } from './limits.ts';
import { makeSandboxFolder, makeSandboxId, recordProcess, removeTree, sweepOrphans } from './orphans.ts';
import type { Sandbox, SandboxDriver } from './sandbox.ts';
import { type SandboxProcess, startSandboxProcess } from './sandbox-process.ts';

export interface BubblewrapOptions {
  /** On a disk of this machine, with a short path: sockets are in it. */
  readonly runDir: string;
  /** By default no network, and the limits that docs/configuration.md names. */
  readonly config?: SandboxConfig;
  readonly log?: Log;
  readonly bwrapPath?: string;
  readonly nodePath?: string;
}

/** What the kernel allows for the path of a Unix socket, without the closing zero. */
const longestSocketPath = 107;
const startTimeoutMs = 60_000;
const longestTimerMs = 2 ** 31 - 1;

export async function openBubblewrapDriver(options: BubblewrapOptions): Promise<SandboxDriver> {
  const { log = silentLog, bwrapPath = 'bwrap', config = sandboxConfig.parse({}) } = options;
  const runDir = resolve(options.runDir);
  const socketBytes = Buffer.byteLength(join(runDir, makeSandboxId(), 'link/socket'));
  if (socketBytes > longestSocketPath) {
    const excess = socketBytes - longestSocketPath;
    throw new RolloutError(
      'sandbox-start-failed',
      `the run directory ${runDir} is ${excess} bytes too long for a Unix socket: choose a shorter one`,
    );
  }
  await mkdir(runDir, { recursive: true, mode: 0o700 });
  const executorFiles = await writeExecutorFiles(runDir, join(runDir, makeSandboxId()));
  const nodePath = await blame('sandbox-start-failed', () =>
    writeHiddenProgram(options.nodePath ?? process.execPath, runDir, join(runDir, makeSandboxId())),
  );
  const limiter = await openLimiter();
  const host = { nodePath, executorFiles, etcFiles: join(executorFiles, 'etc'), system: readHostArguments(), proc: readProcArguments() };
  return {
    name: 'bubblewrap',
    open: async (spec, { signal } = {}) =>
      openSandbox({ env: spec.env ?? {}, ...grant(spec, config) }, { host, limiter, runDir, bwrapPath, log, signal }),
    sweep: () => sweepOrphans(runDir),
  };
}

interface OpenContext {
  readonly host: SandboxHost;
  readonly limiter: Limiter;
  readonly runDir: string;
  readonly bwrapPath: string;
  readonly log: Log;
  readonly signal: AbortSignal | undefined;
}

async function openSandbox(spec: Granted & { readonly env: Readonly<Record<string, string>> }, context: OpenContext): Promise<Sandbox> {
  context.signal?.throwIfAborted();
  const startMs = systemClock.monotonic();
  const { id, folder } = await makeSandboxFolder(context.runDir);
  let started: SandboxProcess | undefined;
  let confinement: Confinement | undefined;
  try {
    confinement = await context.limiter.confine({ id, folder }, spec.limits);
    await mkdir(join(folder, 'link'));
    await writeFile(join(folder, 'link/limits.json'), JSON.stringify(confinement.forPrograms));
    await writeFile(join(folder, 'link/env.json'), JSON.stringify({ ...baseEnv, ...spec.env }));
    const listener = await listen(join(folder, 'link/socket'));
    started = startSandboxProcess(confinement.enter([context.bwrapPath, ...renderArguments(context.host, folder, spec)]));
    const held = { id, folder, process: started, confinement, log: context.log };
    const pid = await started.inside;
    if (pid !== undefined) await recordProcess(folder, pid);
    const sandbox = await waitUntilReady(listener, held, context.signal).finally(() => listener.close());
    context.log.info('sandbox-start', { sandboxId: id, ms: systemClock.monotonic() - startMs });
    return sandbox;
  } catch (error) {
    await started?.kill();
    await confinement?.remove();
    await removeTree(folder);
    if (context.signal?.aborted) throw context.signal.reason;
    const seen = error instanceof Error ? error.message : String(error);
    throw new RolloutError('sandbox-start-failed', `bubblewrap could not start ${id}: ${seen}`, { cause: error });
  }
}

interface Listener {
  /** The one connection that is taken: the executor's, made before anything else runs inside. */
  readonly connection: Promise<Socket>;
  close(): void;
}

async function listen(path: string): Promise<Listener> {
  const server = createServer();
  const connection = new Promise<Socket>((resolve) => server.once('connection', resolve));
  connection.then(() => server.close()); // which removes the socket's file
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  return { connection, close: () => server.close() };
}

interface Held {
  readonly id: SandboxId;
  readonly folder: string;
  readonly process: SandboxProcess;
  readonly confinement: Confinement;
  readonly log: Log;
}

async function waitUntilReady(listener: Listener, held: Held, signal: AbortSignal | undefined): Promise<Sandbox> {
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {}); // it may fail when nobody waits any more
  const cancelTimer = systemClock.after(startTimeoutMs, () => failed.reject(new Error(`not ready within ${startTimeoutMs} ms`)));
  const onAbort = () => failed.reject(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  held.process.ended.then((how) => failed.reject(new Error(how)));
  try {
    signal?.throwIfAborted();
    const socket = await Promise.race([failed.promise, listener.connection]);
    const { sandbox, ready } = holdSandbox(socket, held);
    await Promise.race([failed.promise, ready]);
    return sandbox;
  } finally {
    cancelTimer();
    signal?.removeEventListener('abort', onAbort);
  }
}

function holdSandbox(socket: Socket, held: Held): { sandbox: Sandbox; ready: Promise<void> } {
  const { id, log } = held;
  const died = new AbortController();
  let closing: Promise<void> | undefined;

  async function die(why: string, cause?: AgentEnd): Promise<void> {
    await held.process.kill();
    const error = await toDeath(held, why, cause);
    log.warn('sandbox-die', { sandboxId: id, message: error.message });
    client.close(error);
    died.abort(error);
    await remove(held);
  }
  const onBroken = (why: string) => {
    closing ??= die(why);
  };
  const { wallSeconds } = held.confinement.limits;
  const cancelWall = systemClock.after(Math.min(wallSeconds * 1000, longestTimerMs), () => {
    closing ??= die('', { code: 'sandbox-limit', message: `its time is over (wallSeconds ${wallSeconds})` });
  });
  held.process.ended.then(cancelWall);
  const client = new ExecutorClient(socket, onBroken);
  async function end(): Promise<void> {
    client.close(new RolloutError('sandbox-died', `sandbox ${id} is closed`));
    await held.process.kill();
    await remove(held);
    log.info('sandbox-end', { sandboxId: id });
  }
  const close = () => {
    closing ??= end();
    return closing;
  };
  return { sandbox: toSandbox({ id, client, died: died.signal, close }), ready: client.ready };
}

/** What the agent did to its machine is not the machine's fault. */
async function toDeath({ id, process, confinement }: Held, why: string, cause?: AgentEnd): Promise<RolloutError> {
  const how = await process.ended;
  const end = cause ?? (await confinement.explainEnd(how));
  if (end) return new RolloutError(end.code, `sandbox ${id} was ended: ${end.message}`);
  return new RolloutError('sandbox-died', `sandbox ${id} died: ${why}; ${how}`);
}

async function remove({ folder, confinement }: Held): Promise<void> {
  await confinement.remove();
  await removeTree(folder);
}
