// Protects the machine's devices from sandboxes of a root worker, whose agents may own /dev/null and the like and could change their modes for
// every user. Sandboxes start in a mount namespace in which these devices are read-only: usable, but not changeable.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';

export interface DeviceGuard {
  /** Wraps a command so that it runs with the protected devices. */
  wrap(command: readonly string[]): string[];
  /** The mount namespace that has them. */
  readonly namespace?: string;
  /** Where wrapped commands also see the run folder, at a path that every user can enter. */
  readonly runDirView?: string;
}

/** Every machine has these folders, and nothing that a sandbox needs is in the one that is chosen. */
const views = ['/mnt', '/media'];

const guardDevices = `for name in null zero full random urandom tty; do
  mount --bind /dev/$name /dev/$name && mount -o remount,bind,ro /dev/$name || exit 1
done; [ -n "$1" ] && mount --bind "$1" "$2" && echo viewed || echo ready; read -r end`;

/**
 * Returns commands unchanged if this process is not root, or is root without CAP_SYS_ADMIN and cannot mount. With a run folder, the guard
 * also has the view of it.
 */
export async function openDeviceGuard({ runDir = '' }: { readonly runDir?: string } = {}): Promise<DeviceGuard> {
  const view = views.find((path) => !`${runDir}/`.startsWith(`${path}/`)) ?? '';
  const namespace = process.getuid?.() === 0 ? await openNamespace([runDir, view]) : undefined;
  if (namespace === undefined) return { wrap: (command) => [...command] };
  return {
    wrap: (command) => ['nsenter', `--mount=${namespace.path}`, '--', ...command],
    namespace: namespace.path,
    ...(namespace.hasView && { runDirView: view }),
  };
}

/** A namespace that lives as long as this process: an open file descriptor keeps it. */
async function openNamespace(parts: readonly string[]): Promise<{ readonly path: string; readonly hasView: boolean } | undefined> {
  const args = ['--mount', '--propagation', 'slave', '--', '/bin/sh', '-c', guardDevices, 'sh', ...parts];
  const maker = spawn('unshare', args, { detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
  const exit = once(maker, 'exit').catch(() => []); // there is no such program
  maker.stdin.on('error', () => {}); // the end of the process is its own event
  const [reply] = await Promise.race([once(maker.stdout, 'data'), exit.then(() => [])]);
  if (reply === undefined) return undefined;
  const descriptor = openSync(`/proc/${maker.pid}/ns/mnt`, 'r');
  maker.stdin.end();
  await exit;
  return { path: `/proc/${process.pid}/fd/${descriptor}`, hasView: String(reply).trim() === 'viewed' };
}
