// Opening and closing a sandbox, the same for every driver. A sandbox is recorded on disk before it starts, is ready when its executor says
// so, is controlled over one connection, and ends with its worker, however the worker ends. A driver only decides what to start.

import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { systemClock } from '@millrace/base/clock';
import type { Log } from '@millrace/base/log';
import { messageOf, programLimits, RolloutError, type SandboxId } from '@millrace/protocol';
import { ExecutorClient } from '../executor/executor-client.ts';
import { toSandbox } from '../executor/executor-sandbox.ts';
import { badImageExitCode } from '../executor/wire/exit-code.ts';
import type { Granted } from '../grant.ts';
import type { AgentFault, Confinement, Limiter } from '../limits/limits.ts';
import { removeTree } from '../run-folder/remove-tree.ts';
import { makeSandboxFolder, recordProcess } from '../run-folder/run-folder.ts';
import type { OpenOptions, Sandbox, SandboxSpec } from '../sandbox.ts';
import type { AgentUser } from './agent-user.ts';
import type { DeviceGuard } from './device-guard.ts';
import { type HolderProgram, type SandboxProcess, startSandboxProcess } from './sandbox-process.ts';
import type { Spawner } from './spawner.ts';

export interface SandboxLauncher {
  readonly name: string;
  readonly runDir: string;
  readonly log: Log;
  readonly limiter: Limiter;
  readonly spawner: Spawner;
  readonly guard: DeviceGuard;
  /** If the worker is root and its agents are not. */
  readonly agent?: AgentUser | undefined;
  /** Whether /workspace takes memory, up to `diskMiB`. Otherwise it is on the machine's disk. */
  readonly isDiskInMemory: boolean;
  /** `folder` is the sandbox's own folder in the run folder; it contains `link`. */
  prepare(spec: GrantedSpec, folder: string, signal: AbortSignal | undefined): Promise<Launch>;
}

/** A spec completed from the configuration. `isToFreeze`: its files will be copied to a layer. */
export type GrantedSpec = SandboxSpec & Granted & { readonly isToFreeze?: boolean };

interface Launch {
  readonly holder: HolderProgram;
  /** For the executor's shell and programs. */
  readonly env: Readonly<Record<string, string>>;
  /** Called when the sandbox is dead. */
  readonly release?: () => PromiseLike<void>;
}

const startTimeoutMs = 60_000;
const longestTimerMs = 2 ** 31 - 1;

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
    const launch = await launcher.prepare(spec, folder, signal);
    release = launch.release;
    confinement = launcher.limiter.confine({ id, folder }, launcher.isDiskInMemory ? spec.limits : { ...spec.limits, diskMiB: 0 });
    listener = await listen(join(folder, 'link/socket'));
    const steps = renderFiles(folder, {
      env: launch.env,
      limits: programLimits.parse(confinement.programLimits),
      owner: launcher.agent?.uid,
    });
    const command = confinement.enter({ ...launch.holder, steps }, launcher.guard.namespace);
    started = startSandboxProcess(launcher.spawner, { ...launch.holder, command }, { folder, connected: listener.connection });
    const recorded = started.inside.then((pid) => (pid === undefined ? undefined : recordProcess(folder, pid, launcher.spawner)));
    recorded.catch(() => {}); // if the start fails, the folder may be removed first
    const sandbox = await waitUntilReady(
      listener,
      { id, folder, process: started, confinement, log, release, handedOver, spawner: launcher.spawner },
      signal,
    );
    await recorded;
    watchUse(started, confinement);
    const ms = systemClock.monotonic() - startMs;
    if (handedOver) log.info('sandbox-ahead', { sandboxId: id, driver: name, ms });
    else log.info('sandbox-start', { sandboxId: id, driver: name, start: 'cold', ms });
    return sandbox;
  } catch (error) {
    listener?.connection.then((socket) => socket.destroy()); // no one reads it, so its end would not be noticed
    await started?.kill();
    await confinement?.remove();
    await release?.();
    await removeTree(folder);
    throw toStartError(error, { id, spec, name, signal });
  } finally {
    listener?.close();
  }
}

function watchUse({ inside, ended }: SandboxProcess, confinement: Confinement): void {
  inside.then((pid) => {
    if (pid !== undefined) ended.then(confinement.watch(pid));
  });
}

/** Of the sandbox's own folder. */
const linkFiles = ['link/limits.json', 'link/env.json'] as const;

interface LinkContent {
  readonly limits: unknown;
  readonly env: unknown;
  readonly owner: number | undefined;
}

/** The executor connects to the socket and reads the other files; its mount of them is read-only. As steps of `native/enter`. */
function renderFiles(folder: string, { limits, env, owner }: LinkContent): string[] {
  const files = linkFiles.flatMap((name, at) => ['create', join(folder, name), 'text', JSON.stringify([limits, env][at])]);
  if (owner === undefined) return files;
  return ['owner', `${owner}`, ...files, ...['', 'link', 'link/socket'].flatMap((name) => ['own', join(folder, name)])];
}

interface FailedStart {
  readonly id: SandboxId;
  readonly spec: GrantedSpec;
  readonly name: string;
  readonly signal: AbortSignal | undefined;
}

const badImagePattern = new RegExp(`^exit ${badImageExitCode}: (.*)`, 's');

function toStartError(error: unknown, { id, spec, name, signal }: FailedStart): unknown {
  if (signal?.aborted) return signal.reason;
  if (error instanceof RolloutError) return error;
  const seen = messageOf(error);
  const badImage = badImagePattern.exec(seen)?.[1];
  if (badImage !== undefined) return new RolloutError('sandbox-refused', `the image ${spec.image}: ${badImage}`);
  return new RolloutError('sandbox-start-failed', `${name} could not start ${id}: ${seen}`, { cause: error });
}

interface Listener {
  /** The only connection that is accepted: the executor connects before anything else runs inside. */
  readonly connection: Promise<Socket>;
  close(): void;
}

async function listen(path: string): Promise<Listener> {
  const server = createServer();
  const connection = new Promise<Socket>((resolve) => server.once('connection', resolve));
  connection.then(() => server.close()); // this also removes the socket file
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  return { connection, close: () => server.close() };
}

/** A started sandbox with everything that must be removed at its end. */
interface StartedSandbox {
  readonly id: SandboxId;
  readonly folder: string;
  readonly process: SandboxProcess;
  readonly confinement: Confinement;
  readonly log: Log;
  readonly release: Launch['release'];
  readonly spawner: Spawner;
  readonly handedOver: OpenOptions['handedOver'];
}

async function waitUntilReady(listener: Listener, started: StartedSandbox, signal: AbortSignal | undefined): Promise<Sandbox> {
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {}); // it may reject after the wait is over
  const cancelTimer = systemClock.after(startTimeoutMs, () => failed.reject(new Error(`not ready within ${startTimeoutMs} ms`)));
  const onAbort = () => failed.reject(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  started.process.ended.then((how) => failed.reject(new Error(how)));
  try {
    signal?.throwIfAborted();
    const socket = await Promise.race([failed.promise, listener.connection]);
    const { sandbox, ready } = connectSandbox(socket, started);
    await Promise.race([failed.promise, ready]);
    return sandbox;
  } finally {
    cancelTimer();
    signal?.removeEventListener('abort', onAbort);
  }
}

function connectSandbox(socket: Socket, started: StartedSandbox): { sandbox: Sandbox; ready: Promise<void> } {
  const { id, log, confinement } = started;
  const died = new AbortController();
  let first: number | undefined;
  started.process.inside.then((pid) => {
    first = pid;
  });
  let closing: Promise<void> | undefined;

  async function die(why: string, fault?: AgentFault): Promise<void> {
    await started.process.kill();
    const error = await toDeathError(started, why, fault);
    log.warn('sandbox-die', { sandboxId: id, message: error.message });
    client.close(error);
    died.abort(error);
    await remove(started);
  }
  const onBroken = (why: string) => {
    closing ??= die(why);
  };
  startWallClock(started, (fault) => {
    closing ??= die('', fault);
  });
  const client = new ExecutorClient(socket, { onBroken, isOwnLimit: confinement.isOwnLimit });
  async function end(): Promise<void> {
    client.close(new RolloutError('sandbox-died', `sandbox ${id} is closed`));
    await started.process.kill();
    await remove(started);
    log.info('sandbox-end', { sandboxId: id });
  }
  const close = () => {
    closing ??= end();
    return closing;
  };
  return {
    sandbox: toSandbox({ id, client, gate: confinement.gate, readUse: () => confinement.readUse(first), died: died.signal, close }),
    ready: client.ready,
  };
}

/** For a sandbox that is started ahead, the clock starts when a rollout receives it. */
function startWallClock({ confinement, process, handedOver }: StartedSandbox, onOver: (fault: AgentFault) => void): void {
  const { wallSeconds } = confinement.limits;
  let isOver = false;
  let cancel = () => {};
  process.ended.then(() => {
    isOver = true;
    cancel();
  });
  const start = () => {
    if (isOver) return;
    const message = `it ran out of time (wallSeconds ${wallSeconds})`;
    cancel = systemClock.after(Math.min(wallSeconds * 1000, longestTimerMs), () => onOver({ code: 'sandbox-limit', message }));
  };
  if (handedOver) handedOver.then(start);
  else start();
}

/** A death that the agent caused is not blamed on the sandbox. */
async function toDeathError({ id, process, confinement }: StartedSandbox, why: string, known?: AgentFault): Promise<RolloutError> {
  const how = await process.ended;
  const fault = known ?? confinement.explainEnd(how);
  if (fault) return new RolloutError(fault.code, `sandbox ${id} was ended: ${fault.message}`);
  return new RolloutError('sandbox-died', `sandbox ${id} died: ${why}; ${how}`);
}

/** The groups before the record of them. What the spawner cannot remove takes longer. */
async function remove({ folder, confinement, release, spawner }: StartedSandbox): Promise<void> {
  const files = [...linkFiles, 'link/socket', 'link', 'process', ''].map((name) => join(folder, name));
  const left = await spawner.remove([...confinement.paths, ...files]);
  if (confinement.paths.some((path) => left.includes(path))) await confinement.remove();
  await release?.();
  if (left.length > 0) await removeTree(folder);
}
