// A checkpoint of a sandbox: every file that its programs can change, and the state of its shell. Processes are not in it, so a sandbox with a
// program that still runs has none. What an agent left is read and written only inside of sandboxes, by programs with no more rights than the
// agent: here it is bytes that no one looks into.

import { definedOf, RolloutError } from '@millrace/protocol';
import { executorFolder } from '../layout.ts';
import type { ProgramOutput, Sandbox, SandboxProgram } from '../sandbox.ts';
import { loadShell, saveLimits, saveShell, stateFile } from './shell-state.ts';

export interface Checkpoint {
  /** The working directory of the shell, as the kernel knows it. */
  readonly cwd: string;
  readonly archive: Buffer;
  /** What the worker keeps about the sandbox, as JSON. */
  readonly memory?: string;
}

/** Why there is none: the reason is a property of the sandbox at this moment, or it will not be better later. */
export class NoCheckpoint extends Error {
  readonly isLasting: boolean;

  constructor(message: string, { isLasting }: { readonly isLasting: boolean }) {
    super(message);
    this.isLasting = isLasting;
  }
}

interface CheckpointOptions {
  /** The folders to save: those of the driver. */
  readonly folders: readonly string[];
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

const shellTimeoutMs = 10_000;
const stepMs = 30_000;

/**
 * Prints the processes but itself and the executor, and what the shell has open besides its terminal; then the archive. `$1` is the shell.
 * Each program that it starts replaces it or is waited for, so nothing else is there.
 */
const pack = `own=${executorFolder}
for path in /proc/[0-9]*; do pid=\${path#/proc/}; ((pid == 1 || pid == $$ || pid == $1)) || printf 'process %s;' "$pid"; done
for path in /proc/$1/fd/*; do case \${path##*/} in 0|1|2|255) ;; *) printf 'file %s;' "\${path##*/}";; esac; done
printf '\\n'${saveLimits}
shift
exec tar --create --file=- --format=posix --sparse --xattrs --directory=/ -- "\${@#/}" "${stateFile.slice(1)}"`;

/** Throws NoCheckpoint, the signal's reason, or the error of a sandbox that died. The caller sees to it that nothing else uses the sandbox. */
export async function takeCheckpoint(sandbox: Sandbox, options: CheckpointOptions): Promise<Checkpoint> {
  const { folders, maxBytes, signal } = options;
  const shell = await sandbox.runShell(saveShell, { timeoutMs: shellTimeoutMs, signal });
  const pid = /(?:^|\n)(\d+)\n$/.exec(shell.output)?.[1];
  // Its shell may have been stopped for it: what was in it is lost, which must not happen again.
  if (shell.end !== 'exited') throw new NoCheckpoint(`the shell did not write its state: ${shell.end}`, { isLasting: true });
  if (pid === undefined || shell.cwd === undefined) throw new NoCheckpoint('the shell does not say which it is', { isLasting: true });
  const argv = ['/bin/bash', '--norc', '--noprofile', '-p', '-c', pack, 'pack', pid, ...folders];
  await using program = await sandbox.openProgram(argv, { cwd: '/', signal });
  const { output, end } = await readAll(program, { maxBytes, signal });
  const line = output.indexOf(0x0a);
  const alive = output.toString('latin1', 0, Math.max(0, line));
  if (alive !== '') throw new NoCheckpoint(`programs are running or files are open: ${alive.slice(0, 200)}`, { isLasting: false });
  if (end.exitCode !== 0) throw new NoCheckpoint(`tar: ${end.stderr.slice(0, 500)}`, { isLasting: false });
  return { cwd: shell.cwd, archive: output.subarray(line + 1) };
}

type ProgramEnd = NonNullable<ProgramOutput['end']>;

async function readAll(
  program: SandboxProgram,
  { maxBytes, signal }: Pick<CheckpointOptions, 'maxBytes' | 'signal'>,
): Promise<{ readonly output: Buffer; readonly end: ProgramEnd }> {
  const parts: Buffer[] = [];
  for (let bytes = 0; ; ) {
    const { data, end } = await program.read({ timeoutMs: stepMs, signal });
    bytes += data.length;
    if (bytes > maxBytes) throw new NoCheckpoint(`its files have more than ${maxBytes} bytes`, { isLasting: false });
    if (data.length === 0 && !end) throw new NoCheckpoint('its files could not be read in time', { isLasting: true });
    parts.push(data);
    if (end) return { output: Buffer.concat(parts), end };
  }
}

/** `$@` are the folders. What was prepared in them is replaced. */
const unpack = `find "$@" -mindepth 1 -type d ! -perm -u=rwx -exec chmod u+rwx {} +
find "$@" -mindepth 1 -delete &&
exec tar --extract --file=- --directory=/ --preserve-permissions --no-same-owner --delay-directory-restore --xattrs`;

const writeBytes = 4 << 20;

/** Makes a new sandbox what another one was. Throws if it cannot; then nothing may run in it any more. */
export async function restoreCheckpoint(
  sandbox: Sandbox,
  { cwd, archive }: Checkpoint,
  { folders, signal }: Omit<CheckpointOptions, 'maxBytes'>,
): Promise<void> {
  await using program = await sandbox.openProgram(['/bin/bash', '--norc', '--noprofile', '-p', '-c', unpack, 'unpack', ...folders], {
    cwd: '/',
    signal,
  });
  for (let at = 0; at < archive.length; at += writeBytes) await program.write(archive.subarray(at, at + writeBytes), { signal });
  const { end } = await readAll(program, { maxBytes: 1 << 16, signal });
  if (end.exitCode !== 0) throw new RolloutError('sandbox-died', `the files of a checkpoint were not restored: ${describe(end)}`);
  const loaded = await sandbox.runShell(loadShell, { timeoutMs: stepMs, signal });
  if (loaded.end !== 'exited') throw new RolloutError('sandbox-died', `the shell of a checkpoint was not restored: ${loaded.end}`);
  if (loaded.cwd !== cwd) await moveShell(sandbox, cwd, signal);
  await sandbox.exec(['rm', '-f', '--', stateFile], definedOf({ timeoutMs: stepMs, signal }));
}

async function moveShell(sandbox: Sandbox, cwd: string, signal: AbortSignal): Promise<void> {
  const moved = await sandbox.runShell(`\\builtin cd -- '${cwd.replaceAll("'", `'\\''`)}'`, { timeoutMs: stepMs, signal });
  if (moved.cwd !== cwd) throw new RolloutError('sandbox-died', `the shell of a checkpoint is in ${moved.cwd}, not in ${cwd}`);
}

function describe({ exitCode, signal, stderr }: ProgramEnd): string {
  return `exit ${exitCode ?? signal}: ${stderr.slice(0, 500)}`;
}
