// The machine's devices, for sandboxes of a worker that is root: their agents own /dev/null and its like, and could change their modes
// for everybody. Sandboxes are started from a mount namespace in which the devices are read-only: to be used, and not to be changed.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';

/** Gives a command that starts a sandbox a form that sees the guarded devices. */
export type DeviceGuard = (command: readonly string[]) => string[];

const guardDevices = `for name in null zero full random urandom tty; do
  mount --bind /dev/$name /dev/$name && mount -o remount,bind,ro /dev/$name || exit 1
done; echo ready; read -r end`;

/** Guards nothing where there is nothing to guard, or where a root without CAP_SYS_ADMIN cannot; a sandbox mounts devices as it finds them. */
export async function openDeviceGuard(): Promise<DeviceGuard> {
  const namespace = process.getuid?.() === 0 ? await openNamespace() : undefined;
  return (command) => (namespace === undefined ? [...command] : ['nsenter', `--mount=${namespace}`, '--', ...command]);
}

/** The path of a namespace that lives as long as this process: a descriptor holds it. */
async function openNamespace(): Promise<string | undefined> {
  const args = ['--mount', '--propagation', 'slave', '--', '/bin/sh', '-c', guardDevices];
  const maker = spawn('unshare', args, { detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
  const exit = once(maker, 'exit').catch(() => []); // there is no such program
  maker.stdin.on('error', () => {}); // it has ended, and that is told by its own event
  const isReady = await Promise.race([once(maker.stdout, 'data').then(() => true), exit.then(() => false)]);
  if (!isReady) return undefined;
  const descriptor = openSync(`/proc/${maker.pid}/ns/mnt`, 'r');
  maker.stdin.end();
  await exit;
  return `/proc/${process.pid}/fd/${descriptor}`;
}
