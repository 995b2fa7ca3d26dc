// The life of a sandbox, the same for every driver: written down before it starts, ready when its executor says so, held by one
// connection, and gone with its worker, however the worker ends. A driver only says what is to be started.

import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join, resolve } from 'node:path';
import { messageOf, RolloutError, type SandboxId } from '@millrace/protocol';
import { systemClock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { ExecutorClient } from '../executor/executor-client.ts';
import { toSandbox } from '../executor/executor-sandbox.ts';
import type { AgentEnd, Confinement, Granted, Limiter } from '../limits/limits.ts';
import { makeSandboxFolder, makeSandboxId, recordProcess, removeTree } from '../run-folder/run-folder.ts';
import type { OpenOptions, Sandbox, SandboxSpec } from '../sandbox.ts';
import type { DeviceGuard } from './device-guard.ts';
import { type HolderProgram, type SandboxProcess, startSandboxProcess } from './sandbox-process.ts';

export interface SandboxLauncher {
  readonly name: string;
  readonly runDir: string;
  readonly log: Log;
  readonly limiter: Limiter;
  readonly guardDevices: DeviceGuard;
  /** /workspace takes memory, up to `diskMiB`. Otherwise it is on the machine's disk. */
  readonly isDiskInMemory: boolean;
  /** For a sandbox of this folder, which has `link`. */
  prepare(spec: GrantedSpec, folder: string, signal: AbortSignal | undefined): Promise<Launch>;
}

/** A spec with all that the configuration adds to it. `isToFreeze`: its files are wanted when it is prepared. */
export type GrantedSpec = SandboxSpec & Granted & { readonly isToFreeze?: boolean };

export interface Launch {
  readonly holder: HolderProgram;
  /** For the executor's shell and programs. */
  readonly env: Readonly<Record<string, string>>;
  /** Called when the sandbox is dead. */
  readonly release?: () => PromiseLike<void>;
}

/** What the kernel allows for the path of a Unix socket, without the closing zero. */
const longestSocketPath = 107;
const startTimeoutMs = 60_000;
const longestTimerMs = 2 ** 31 - 1;

/** Answers the directory's whole path. */
export async function openRunDir(path: string): Promise<string> {
  const runDir = resolve(path);
  const excess = Buffer.byteLength(join(runDir, makeSandboxId(), 'link/socket')) - longestSocketPath;
  if (excess > 0) {
    const message = `the run directory ${runDir} is ${excess} bytes too long for a Unix socket: choose a shorter one`;
    throw new RolloutError('sandbox-start-failed', message);
  }
  await mkdir(runDir, { recursive: true, mode: 0o700 });
  return runDir;
}

export async function openSandbox(launcher: SandboxLauncher, spec: GrantedSpec, options: OpenOptions): Promise<Sandbox> {
  const { signal, handedOver } = options;
  signal?.throwIfAborted();
  const { name, log } = launcher;
  const startMs = systemClock.monotonic();
  const { id, folder } = await makeSandboxFolder(launcher.runDir);
  let started: SandboxProcess | undefined;
  let listener: Listener | undefined;
  let confinement: Confinement | undefined;
  let release: Launch['release'];
  try {
    await mkdir(join(folder, 'link'));
    const { holder, env, release: giveBack } = await launcher.prepare(spec, folder, signal);
    release = giveBack;
    confinement = await launcher.limiter.confine({ id, folder }, launcher.isDiskInMemory ? spec.limits : { ...spec.limits, diskMiB: 0 });
    await writeFile(join(folder, 'link/limits.json'), JSON.stringify(confinement.forPrograms));
    await writeFile(join(folder, 'link/env.json'), JSON.stringify(env));
    listener = await listen(join(folder, 'link/socket'));
    const command = launcher.guardDevices(confinement.enter(holder.command));
    started = startSandboxProcess({ ...holder, command }, { folder, connected: listener.connection });
    const recorded = started.inside.then((pid) => (pid === undefined ? undefined : recordProcess(folder, pid)));
    recorded.catch(() => {}); // where the start fails, its folder may be gone first
    const sandbox = await waitUntilReady(listener, { id, folder, process: started, confinement, log, release, handedOver }, signal);
    await recorded;
    const ms = systemClock.monotonic() - startMs;
    if (handedOver) log.info('sandbox-ahead', { sandboxId: id, driver: name, ms });
    else log.info('sandbox-start', { sandboxId: id, driver: name, start: 'cold', ms });
    return sandbox;
  } catch (error) {
    await started?.kill();
    await confinement?.remove();
    await release?.();
    await removeTree(folder);
    if (signal?.aborted) throw signal.reason;
    if (error instanceof RolloutError) throw error;
    const seen = messageOf(error);
    const unfit = /^exit 78: (.*)/s.exec(seen)?.[1]; // as the executor says it
    if (unfit !== undefined) throw new RolloutError('sandbox-refused', `the image ${spec.image}: ${unfit}`);
    throw new RolloutError('sandbox-start-failed', `${name} could not start ${id}: ${seen}`, { cause: error });
  } finally {
    listener?.close();
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
  readonly release: Launch['release'];
  readonly handedOver: OpenOptions['handedOver'];
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
  startWall(held, (end) => {
    closing ??= die('', end);
  });
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

/** The wall clock of a sandbox that was started ahead waits with it. */
function startWall({ confinement, process, handedOver }: Held, onOver: (end: AgentEnd) => void): void {
  const { wallSeconds } = confinement.limits;
  let isOver = false;
  let cancel = () => {};
  process.ended.then(() => {
    isOver = true;
    cancel();
  });
  const start = () => {
    if (isOver) return;
    const message = `its time is over (wallSeconds ${wallSeconds})`;
    cancel = systemClock.after(Math.min(wallSeconds * 1000, longestTimerMs), () => onOver({ code: 'sandbox-limit', message }));
  };
  if (handedOver) handedOver.then(start);
  else start();
}

/** What the agent did to its machine is not the machine's fault. */
async function toDeath({ id, process, confinement }: Held, why: string, cause?: AgentEnd): Promise<RolloutError> {
  const how = await process.ended;
  const end = cause ?? (await confinement.explainEnd(how));
  if (end) return new RolloutError(end.code, `sandbox ${id} was ended: ${end.message}`);
  return new RolloutError('sandbox-died', `sandbox ${id} died: ${why}; ${how}`);
}

async function remove({ folder, confinement, release }: Held): Promise<void> {
  await confinement.remove();
  await release?.();
  await removeTree(folder);
}
