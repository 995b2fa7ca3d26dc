// Protects the machine's devices from sandboxes of a root worker, whose agents own /dev/null and the like and could change their modes for
// every user. Sandboxes start in a mount namespace in which these devices are read-only: usable, but not changeable.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';

/** Wraps a command so that it runs with the protected devices. */
export type DeviceGuard = (command: readonly string[]) => string[];

const guardDevices = `for name in null zero full random urandom tty; do
  mount --bind /dev/$name /dev/$name && mount -o remount,bind,ro /dev/$name || exit 1
done; echo ready; read -r end`;

/** Returns commands unchanged if this process is not root, or is root without CAP_SYS_ADMIN and cannot mount. */
export async function openDeviceGuard(): Promise<DeviceGuard> {
  const namespace = process.getuid?.() === 0 ? await openNamespace() : undefined;
  return (command) => (namespace === undefined ? [...command] : ['nsenter', `--mount=${namespace}`, '--', ...command]);
}

/** The path of a namespace that lives as long as this process: an open file descriptor keeps it. */
async function openNamespace(): Promise<string | undefined> {
  const args = ['--mount', '--propagation', 'slave', '--', '/bin/sh', '-c', guardDevices];
  const maker = spawn('unshare', args, { detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
  const exit = once(maker, 'exit').catch(() => []); // there is no such program
  maker.stdin.on('error', () => {}); // the end of the process is its own event
  const isReady = await Promise.race([once(maker.stdout, 'data').then(() => true), exit.then(() => false)]);
  if (!isReady) return undefined;
  const descriptor = openSync(`/proc/${maker.pid}/ns/mnt`, 'r');
  maker.stdin.end();
  await exit;
  return `/proc/${process.pid}/fd/${descriptor}`;
}
