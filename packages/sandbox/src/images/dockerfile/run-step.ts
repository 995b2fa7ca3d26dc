// RUN: a program inside the root of an image, with the machine's network and without its files. For root it has the rights that Docker
// gives to a build, and for other users those of Apptainer's fakeroot, on their own files only.

import { stat } from 'node:fs/promises';
import { ProgramFailed, runProgram } from '@millrace/base/run-program';
import { RolloutError } from '@millrace/protocol';
import { resolveInside } from './inside-root.ts';

interface RunStep {
  readonly apptainerPath: string;
  readonly root: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  onText(text: string): void;
}

/** What package managers need, without rights over devices, mounts, modules or the network. */
const capabilities = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'SETGID', 'SETUID', 'SETFCAP', 'SYS_CHROOT'];

const isRoot = () => process.getuid?.() === 0;

/** Throws `sandbox-start-failed` with the end of its output. */
export async function runStep(step: RunStep): Promise<void> {
  const rights = isRoot()
    ? ['--no-privs', '--add-caps', capabilities.map((name) => `CAP_${name}`).join(',')]
    : await renderFakeroot(step.root);
  const command = [
    ...[step.apptainerPath, '--silent', '--nocolor', 'exec', ...rights],
    // /tmp is the image's own, as in Docker.
    ...['--writable', '--contain', '--pid', '--ipc', '--no-home', '--cleanenv', '--no-mount', 'home,tmp,sys', '--pwd', step.cwd],
    ...[step.root, ...step.argv],
  ];
  const variables = Object.entries(step.env).map(([name, value]) => [`APPTAINERENV_${name}`, value]);
  const { PATH, HOME } = process.env;
  let output = '';
  const onText = (text: string) => {
    output = (output + text).slice(-2000);
    step.onText(text);
  };
  await runProgram(command, { env: { PATH, HOME, ...Object.fromEntries(variables) }, signal: step.signal, onText }).catch((error) => {
    if (!(error instanceof ProgramFailed)) throw error;
    const how = error.message
      .slice(0, error.message.length - error.stderr.length)
      .replace(/: $/, '')
      .replace(step.apptainerPath, 'the command');
    throw new RolloutError('sandbox-start-failed', `${how}: ${output.trim()}`, { cause: error });
  });
}

/** Without a range of users, Apptainer runs the machine's fakeroot program inside, which needs getopt there. */
async function renderFakeroot(root: string): Promise<string[]> {
  const found = await stat(await resolveInside(root, '/usr/bin/getopt')).catch(() => undefined); // a small image
  return found ? ['--fakeroot'] : ['--fakeroot', '--ignore-fakeroot-command'];
}

/** A sandbox has one user, so every file of the image must be that user's. Without this, files of others could not be written or removed. */
export async function takeOwnership(root: string): Promise<void> {
  const take = ['find', root, '!', '-user', '0', '-exec', 'chown', '--no-dereference', '0:0', '{}', '+'];
  if (isRoot()) await runProgram(take);
  // Without a range of users, there are no files of others.
  else await runProgram(['unshare', '--map-root-user', '--map-auto', ...take]).catch(() => {});
}
