// The disk of one sandbox, with a hard size: mounted in a namespace that the sandbox's holder is started in, so that nobody else
// sees it and it is gone with the holder, however that ends. It also stacks a layer's files below /workspace, copy-on-write.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rename, stat, writeFile } from 'node:fs/promises';
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
  const works = async (access: DiskAccess, template?: string) => {
    const trial = await mkdtemp(join(folder, 'trial-'));
    const plan = { folder: trial, diskMiB: 1, ...(template === undefined ? {} : { template }) };
    const [program = '', ...args] = await prepareDisk(access, plan, ['true']);
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
      const template = await makeDiskTemplate(folder, 1).catch(() => undefined); // there is no mkfs
      return { kind, hasLoop: template !== undefined && (await works({ kind, hasLoop: true }, template)) };
    }
    return undefined;
  } finally {
    await removeTree(folder);
  }
}

export interface DiskPlan {
  readonly folder: string;
  readonly diskMiB: number;
  /** From `makeDiskTemplate`; without it the disk is in memory. */
  readonly template?: string;
  /** The folder of the layer whose files are to be seen in `home`. */
  readonly layer?: string;
  /** Folders whose files are to be seen in `folder/root`, below what is written there to the disk; the first is topmost. With `template` only. */
  readonly root?: readonly string[];
  /** Folders beside the disk that hold so much, in memory: what must have room when the disk is full. */
  readonly besideMiB?: Readonly<Record<string, number>>;
}

/** On every disk; `upper` and `work` stack a layer below `home`, those of `root` an image below all that is written to it. */
const diskFolders = ['home', 'upper', 'work', 'root/upper', 'root/work', 'scratch'];
const format = ['-q', '-F', '-m', '0', '-i', '4096', '-O', '^has_journal,^resize_inode', '-E', 'lazy_itable_init=1'];
const form = createHash('sha256')
  .update(JSON.stringify([diskFolders, format]))
  .digest('hex')
  .slice(0, 8);

/** A sparse file with a file system in it that has the disk's folders, for disks to be copied from; made once for each size. */
export async function makeDiskTemplate(runDir: string, diskMiB: number): Promise<string> {
  const template = join(runDir, `template-${form}-${diskMiB}`);
  if (await stat(template).catch(() => undefined)) return template;
  const scratch = join(runDir, makeSandboxId());
  const [file, content] = [join(scratch, 'file'), join(scratch, 'content')];
  try {
    for (const name of diskFolders) await mkdir(join(content, name), { recursive: true });
    await run('truncate', ['--size', `${diskMiB}M`, file]);
    await run('mkfs.ext4', [...format, '-d', content, file], { env: { PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin` } });
    await rename(file, template); // whoever comes second replaces it by its like
  } finally {
    await removeTree(scratch);
  }
  return template;
}

/**
 * Mounts what `fstab` names, and then becomes the command. The overlay is refused by kernels before 5.11 where the worker is not
 * root: then the layer is copied.
 */
const script = `set -e
disk=$1/disk; [ -z "$2" ] || cp --sparse=always --reflink=auto -- "$2" "$disk.img"
mount --all --fstab "$1/fstab"
[ -d "$disk/home" ] || (cd "$disk"; mkdir -p ${diskFolders.join(' ')})
if [ -n "$3" ]; then
  mount -t overlay -o "lowerdir=$3/home,upperdir=$disk/upper,workdir=$disk/work,nosuid,nodev$4" overlay "$disk/home" 2>/dev/null ||
  cp -a "$3/home/." "$disk/home"
fi
shift 4; exec "$@"`;

/** Writes down the mounts of a sandbox's disk, and gives the command a form that has them: `folder/disk`, and what is beside it. */
export async function prepareDisk(access: DiskAccess, plan: DiskPlan, command: readonly string[]): Promise<string[]> {
  const { folder, template = '', layer = '' } = plan;
  refuseSeparators(folder);
  const points = ['disk', ...(plan.root ? ['root'] : []), ...Object.keys(plan.besideMiB ?? {})];
  await Promise.all(points.map((name) => mkdir(join(folder, name))));
  await writeFile(join(folder, 'fstab'), renderMounts(plan));
  const isUser = access.kind === 'user';
  return [
    ...['unshare', '--mount', '--propagation', 'private'],
    ...(isUser ? ['--user', '--map-current-user', '--keep-caps'] : []),
    ...['/bin/sh', '-c', script, 'sh', folder, template, layer, isUser ? ',userxattr' : ''],
    ...(isUser ? ['setpriv', '--inh-caps=-all', '--ambient-caps=-all'] : []),
    ...command,
  ];
}

/** As lines of an fstab: one program makes all of them. */
function renderMounts({ folder, diskMiB, template, root, besideMiB = {} }: DiskPlan): string {
  const inMemory = (name: string, sizeMiB: number) => ['tmpfs', join(folder, name), 'tmpfs', `size=${sizeMiB * mib},mode=755,nosuid,nodev`];
  const [file, disk] = [join(folder, 'disk.img'), join(folder, 'disk')];
  const stack = (lower: readonly string[]) =>
    `lowerdir=${lower.join(':')},upperdir=${disk}/root/upper,workdir=${disk}/root/work,nosuid,nodev`;
  const mounts = [
    template === undefined ? inMemory('disk', diskMiB) : [file, disk, 'ext4', 'loop,nosuid,nodev,noatime,barrier=0,noinit_itable'],
    ...(root ? [['overlay', join(folder, 'root'), 'overlay', stack(root)]] : []),
    ...Object.entries(besideMiB).map(([name, sizeMiB]) => inMemory(name, sizeMiB)),
  ];
  const toField = (field: string) => field.replace(/\s/g, (space) => `\\${space.charCodeAt(0).toString(8).padStart(3, '0')}`);
  return mounts.map((fields) => `${fields.map(toField).join(' ')}\n`).join('');
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
