// The disk of one sandbox, with a hard size: mounted in a namespace that the sandbox's holder is started in, so that nobody else
// sees it and it is gone with the holder, however that ends. It also stacks a layer's files below /workspace, copy-on-write.

import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RolloutError } from '@millrace/protocol';
import { runProgram } from '../../base/run-program.ts';
import { makeOnce } from '../run-folder/make-once.ts';
import { removeTree } from '../run-folder/run-folder.ts';

/** How this process comes by mounts of its own; the same for all its sandboxes. */
export interface DiskAccess {
  /** `root` has them by right. Others get them in a user namespace, which the holder then has no rights in. */
  readonly kind: 'root' | 'user';
  /** Whether a file can be mounted as a disk; only root's kernel does it. Otherwise disks are in memory. */
  readonly hasLoop: boolean;
  /** Whether folders can be stacked; kernels before 5.11 refuse it to others than root. Otherwise a layer is copied. */
  readonly hasOverlay: boolean;
}

const mib = 2 ** 20;
const trialMs = 20_000;

/** Absent where this machine gives no mounts: then nothing bounds what is written to folders, and nothing is stacked. */
export async function findDiskAccess(options: { readonly loop: boolean }): Promise<DiskAccess | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'disk-'));
  const works = async (kind: DiskAccess['kind'], more: Pick<DiskPlan, 'template' | 'root'> = {}) => {
    const trial = await mkdtemp(join(folder, 'trial-'));
    const access = { kind, hasLoop: true, hasOverlay: true };
    const command = await prepareDisk(access, { folder: trial, diskMiB: 1, ...more }, ['true']);
    return runProgram(command, { timeoutMs: trialMs }).then(
      () => true,
      () => false,
    );
  };
  try {
    const kinds = process.getuid?.() === 0 ? (['root', 'user'] as const) : (['user'] as const);
    for (const kind of kinds) {
      if (!(await works(kind))) continue;
      const hasOverlay = await works(kind, { root: [folder] });
      if (kind === 'user' || !options.loop) return { kind, hasLoop: false, hasOverlay };
      const template = await makeDiskTemplate(folder, 1).catch(() => undefined); // there is no mkfs
      return { kind, hasLoop: template !== undefined && (await works(kind, { template })), hasOverlay };
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
  /** Folders whose files are to be seen in `folder/root`, below what is written there to the disk; the first is topmost. */
  readonly root?: readonly string[];
  /** Folders beside the disk that hold so much, in memory: what must have room when the disk is full. */
  readonly besideMiB?: Readonly<Record<string, number>>;
}

/** On every disk; `upper` and `work` stack a layer below `home`, those of `root` an image below all that is written to it. */
const diskFolders = ['home', 'upper', 'work', 'root/upper', 'root/work', 'scratch'];
const format = ['-q', '-F', '-m', '0', '-i', '4096', '-O', '^has_journal,^resize_inode', '-E', 'lazy_itable_init=1'];
const templateName = 'disk.img';

/** Answers a sparse file with a file system in it that has the disk's folders, for disks to be copied from; made once for each size. */
export async function makeDiskTemplate(runDir: string, diskMiB: number): Promise<string> {
  const content = [diskMiB, diskFolders, format];
  const folder = await makeOnce(runDir, { kind: 'template', content }, async (scratch) => {
    const [file, folders] = [join(scratch, templateName), join(scratch, 'folders')];
    for (const name of diskFolders) await mkdir(join(folders, name), { recursive: true });
    await runProgram(['truncate', '--size', `${diskMiB}M`, file]);
    const env = { PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin` };
    await runProgram(['mkfs.ext4', ...format, '-d', folders, file], { env });
  });
  return join(folder, templateName);
}

/** Copies or makes the disk, mounts the rest, copies a layer that cannot be stacked, and becomes the command. */
const script = `set -e; disk=$1/disk
if [ -n "$2" ]; then cp --sparse=always --reflink=auto -- "$2" "$disk.img"
else mount -t tmpfs -o "$3" tmpfs "$disk"; (cd "$disk"; mkdir -p ${diskFolders.join(' ')}); fi
mount --all --fstab "$1/fstab"
[ -z "$4" ] || cp -a "$4/home/." "$disk/home"
shift 4; exec "$@"`;

/** Writes down the mounts of a sandbox's disk, and gives the command a form that has them: `folder/disk`, and what is beside it. */
export async function prepareDisk(access: DiskAccess, plan: DiskPlan, command: readonly string[]): Promise<string[]> {
  const { folder, template = '', layer = '', diskMiB } = plan;
  refuseSeparators(folder);
  const points = ['disk', ...(plan.root ? ['root'] : []), ...Object.keys(plan.besideMiB ?? {})];
  await Promise.all(points.map((name) => mkdir(join(folder, name))));
  await writeFile(join(folder, 'fstab'), renderMounts(access, plan));
  const isUser = access.kind === 'user';
  return [
    ...['unshare', '--mount', '--propagation', 'private'],
    ...(isUser ? ['--user', '--map-current-user', '--keep-caps'] : []),
    ...['/bin/sh', '-c', script, 'sh', folder, template, inMemory(diskMiB), access.hasOverlay ? '' : layer],
    ...(isUser ? ['setpriv', '--inh-caps=-all', '--ambient-caps=-all'] : []),
    ...command,
  ];
}

/** The options of a tmpfs. */
function inMemory(sizeMiB: number): string {
  return `size=${sizeMiB * mib},mode=755,nosuid,nodev`;
}

/** As lines of an fstab: one program makes all of them. */
function renderMounts({ kind, hasOverlay }: DiskAccess, { folder, template, layer, root, besideMiB = {} }: DiskPlan): string {
  const disk = join(folder, 'disk');
  const stack = (lower: readonly string[], on: string) =>
    `lowerdir=${lower.join(':')},upperdir=${join(on, 'upper')},workdir=${join(on, 'work')},nosuid,nodev${kind === 'user' ? ',userxattr' : ''}`;
  const mounts = [
    ...(template === undefined ? [] : [[`${disk}.img`, disk, 'ext4', 'loop,nosuid,nodev,noatime,barrier=0,noinit_itable']]),
    ...(root === undefined ? [] : [['overlay', join(folder, 'root'), 'overlay', stack(root, join(disk, 'root'))]]),
    ...(layer === undefined || !hasOverlay ? [] : [['overlay', join(disk, 'home'), 'overlay', stack([join(layer, 'home')], disk)]]),
    ...Object.entries(besideMiB).map(([name, sizeMiB]) => ['tmpfs', join(folder, name), 'tmpfs', inMemory(sizeMiB)]),
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
