// The disk of one sandbox, with a hard size: mounted in a namespace that the sandbox's holder is started in, so that nobody else
// sees it and it is gone with the holder, however that ends. It also stacks a layer's files below /workspace, copy-on-write.

import { execFile } from 'node:child_process';
import { mkdtemp, rename, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { RolloutError } from '@millrace/protocol';
import { makeSandboxId, removeTree } from './orphans.ts';

/** How this process comes by mounts of its own; the same for all its sandboxes. */
export interface DiskAccess {
  /** `root` has them by right. Others get them in a user namespace, which the holder then has no rights in. */
  readonly kind: 'root' | 'user';
  /** Whether a file can be mounted as a disk; only root's kernel does it. Otherwise disks are in memory. */
  readonly hasLoop: boolean;
}

const run = promisify(execFile);
const mib = 2 ** 20;
const trialMs = 20_000;

/** Absent where this machine gives no mounts: then nothing bounds what is written to folders, and nothing is stacked. */
export async function findDiskAccess(options: { readonly loop: boolean }): Promise<DiskAccess | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'disk-'));
  const works = (access: DiskAccess, file?: string) => {
    const [program = '', ...args] = renderDisk(access, { folder, diskMiB: 1, ...(file === undefined ? {} : { file }) }, ['true']);
    return run(program, args, { timeout: trialMs }).then(
      () => true,
      () => false,
    );
  };
  try {
    const kinds = process.getuid?.() === 0 ? (['root', 'user'] as const) : (['user'] as const);
    for (const kind of kinds) {
      if (!(await works({ kind, hasLoop: false }))) continue;
      if (kind === 'user' || !options.loop) return { kind, hasLoop: false };
      const file = await makeDiskFile(folder, { folder, diskMiB: 1 }).catch(() => undefined); // there is no mkfs
      return { kind, hasLoop: file !== undefined && (await works({ kind, hasLoop: true }, file)) };
    }
    return undefined;
  } finally {
    await removeTree(folder);
  }
}

/** Sparse, with an empty file system in it: a copy of one that is made once for each size. */
export async function makeDiskFile(
  runDir: string,
  { folder, diskMiB }: { readonly folder: string; readonly diskMiB: number },
): Promise<string> {
  const template = join(runDir, `disk-${diskMiB}`);
  if (!(await stat(template).catch(() => undefined))) {
    const scratch = join(runDir, makeSandboxId());
    await run('truncate', ['--size', `${diskMiB}M`, scratch]);
    const format = ['-q', '-F', '-m', '0', '-i', '4096', '-O', '^has_journal,^resize_inode', '-E', 'lazy_itable_init=1'];
    await run('mkfs.ext4', [...format, scratch], { env: { PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin` } });
    await rename(scratch, template); // whoever comes second replaces it by its like
  }
  const file = join(folder, 'disk.img');
  await run('cp', ['--sparse=always', '--reflink=auto', '--', template, file]);
  return file;
}

export interface DiskPlan {
  readonly folder: string;
  readonly diskMiB: number;
  /** From `makeDiskFile`; without it the disk is in memory. */
  readonly file?: string;
  /** The folder of the layer whose files are to be seen in `home`. */
  readonly layer?: string;
  /** Folders on the disk, beside `home`. */
  readonly parts?: readonly string[];
  /** Folders beside the disk that hold so much, in memory: what must have room when the disk is full. */
  readonly besideMiB?: Readonly<Record<string, number>>;
}

/**
 * `folder/disk` with `home` in it, and then the command. The overlay is refused by kernels before 5.11 where the worker is not
 * root: then the layer is copied. The file is gone from its folder as soon as it is mounted: no sweep has to know of it.
 */
const script = `set -e
disk=$1/disk; mkdir -p "$disk"
if [ -n "$3" ]; then mount -t ext4 -o loop,nosuid,nodev,noatime,barrier=0,noinit_itable "$3" "$disk"; rm "$3"; rmdir "$disk/lost+found"
else mount -t tmpfs -o "size=$2,mode=755,nosuid,nodev" tmpfs "$disk"; fi
mkdir "$disk/home" "$disk/upper" "$disk/work"; for part in $6; do mkdir "$disk/$part"; done
if [ -n "$4" ]; then
  mount -t overlay -o "lowerdir=$4/home,upperdir=$disk/upper,workdir=$disk/work,nosuid,nodev$5" overlay "$disk/home" 2>/dev/null ||
  cp -a "$4/home/." "$disk/home"
fi
folder=$1; shift 6
while [ "$1" != -- ]; do mkdir -p "$folder/$1"; mount -t tmpfs -o "size=$2,mode=755,nosuid,nodev" tmpfs "$folder/$1"; shift 2; done
shift; exec "$@"`;

export function renderDisk(access: DiskAccess, plan: DiskPlan, command: readonly string[]): string[] {
  const { folder, diskMiB, file = '', layer = '', parts = [], besideMiB = {} } = plan;
  refuseSeparators(folder);
  const isUser = access.kind === 'user';
  return [
    ...['unshare', '--mount', '--propagation', 'private'],
    ...(isUser ? ['--user', '--map-current-user', '--keep-caps'] : []),
    ...['/bin/sh', '-c', script, 'sh', folder, String(diskMiB * mib), file, layer, isUser ? ',userxattr' : '', parts.join(' ')],
    ...Object.entries(besideMiB).flatMap(([name, sizeMiB]) => [name, String(sizeMiB * mib)]),
    '--',
    ...(isUser ? ['setpriv', '--inh-caps=-all', '--ambient-caps=-all'] : []),
    ...command,
  ];
}

/** The command, in the namespace of the holder with this pid, with rights over all files of the sandbox. */
export function renderEnterDisk(access: DiskAccess, holder: number, command: readonly string[]): string[] {
  const enter = ['nsenter', '--target', String(holder), '--mount'];
  if (access.kind === 'root') return [...enter, ...command];
  return [...enter, '--user', '--preserve-credentials', 'unshare', '--user', '--map-root-user', ...command];
}

export function refuseSeparators(path: string): void {
  if (!/[:,\\]/.test(path)) return;
  throw new RolloutError(
    'sandbox-start-failed',
    `${path} has a colon, a comma or a backslash in it, which a mount takes for the end of a path`,
  );
}
