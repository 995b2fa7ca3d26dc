// The disk of one sandbox, with a hard size limit. It is mounted in the mount namespace of the sandbox's holder, so no other process sees
// it, and the kernel removes it with the holder. It also stacks a layer's files under /workspace, copy-on-write.

import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProgram } from '@millrace/base/run-program';
import { definedOf, RolloutError } from '@millrace/protocol';
import { makeOnce } from '../run-folder/make-once.ts';
import { removeTree } from '../run-folder/remove-tree.ts';

/** How this process can mount file systems; the same for all its sandboxes. */
export interface DiskAccess {
  /** `root` may mount directly. Other users mount in a user namespace, in which the holder then has no rights. */
  readonly kind: 'root' | 'user';
  /** Whether a file can be mounted as a disk, which the kernel allows only root. Otherwise disks are in memory. */
  readonly hasLoop: boolean;
  /** Whether folders can be stacked, which kernels before 5.11 allow only root. Otherwise a layer is copied. */
  readonly hasOverlay: boolean;
}

const mib = 2 ** 20;
const trialMs = 20_000;

/** Undefined if this process cannot mount anything: then nothing limits the size of folders, and nothing is stacked. */
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
      return { kind, hasLoop: template !== undefined && (await works(kind, definedOf({ template }))), hasOverlay };
    }
    return undefined;
  } finally {
    await removeTree(folder);
  }
}

export interface DiskPlan {
  readonly folder: string;
  /** Where the command sees the folder, if not at its own path. */
  readonly view?: string;
  /** The user that owns the files of the disk, if not the worker's. */
  readonly owner?: number;
  readonly diskMiB: number;
  /** From `makeDiskTemplate`. Without it the disk is in memory. */
  readonly template?: string;
  /** The folder of the layer whose files appear in `home`. */
  readonly layer?: string;
  /** Folders whose files appear in `folder/root`, under the files that are written there to the disk. The first is topmost. */
  readonly root?: readonly string[];
  /** More folders, each an in-memory file system of this size: space that remains when the disk is full. */
  readonly tmpfsMiB?: Readonly<Record<string, number>>;
}

/** On every disk. `upper` and `work` stack a layer under `home`; those in `root` stack an image under everything written to it. */
const diskFolders = ['home', 'upper', 'work', 'root/upper', 'root/work', 'scratch'];
const format = ['-q', '-F', '-m', '0', '-i', '4096', '-O', '^has_journal,^resize_inode', '-E', 'lazy_itable_init=1'];
const templateName = 'disk.img';

/** Returns a sparse file with a formatted file system that has the disk's folders. Disks are copies of it. Made once for each size. */
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

/** Copies or creates the disk, mounts the rest, copies a layer that cannot be stacked, and becomes the command. */
const script = `set -e; disk=$1/disk
if [ -n "$2" ]; then cp --sparse=always --reflink=auto -- "$2" "$disk.img"
else mount -t tmpfs -o "$3" tmpfs "$disk"; (cd "$disk"; mkdir -p ${diskFolders.join(' ')}); fi
[ -z "$5" ] || chown "$5:$5" "$disk/home" "$disk/upper"
mount --all --fstab "$1/fstab"
[ -z "$4" ] || cp -a "$4/home/." "$disk/home"
shift 5; exec "$@"`;

/** Writes the list of a sandbox's mounts, and wraps the command so that it runs with them: `folder/disk` and the other folders of the plan. */
export async function prepareDisk(access: DiskAccess, plan: DiskPlan, command: readonly string[]): Promise<string[]> {
  const { folder, view = folder, template = '', layer = '', diskMiB, owner } = plan;
  refuseSeparators(folder);
  const points = ['disk', ...(plan.root ? ['root'] : []), ...Object.keys(plan.tmpfsMiB ?? {})];
  await Promise.all(points.map((name) => mkdir(join(folder, name))));
  await writeFile(join(folder, 'fstab'), renderMounts(access, plan));
  const isUser = access.kind === 'user';
  return [
    ...['unshare', '--mount', '--propagation', 'private'],
    ...(isUser ? ['--user', '--map-current-user', '--keep-caps'] : []),
    ...['/bin/sh', '-c', script, 'sh', view, template, renderTmpfsOptions(diskMiB), access.hasOverlay ? '' : layer, String(owner ?? '')],
    ...(isUser ? ['setpriv', '--inh-caps=-all', '--ambient-caps=-all'] : []),
    ...command,
  ];
}

function renderTmpfsOptions(sizeMiB: number): string {
  return `size=${sizeMiB * mib},mode=755,nosuid,nodev`;
}

/** As lines of an fstab, so that one program makes all the mounts. */
function renderMounts({ kind, hasOverlay }: DiskAccess, plan: DiskPlan): string {
  const { view = plan.folder, template, layer, root, tmpfsMiB = {} } = plan;
  const disk = join(view, 'disk');
  const stack = (lower: readonly string[], on: string) =>
    `lowerdir=${lower.join(':')},upperdir=${join(on, 'upper')},workdir=${join(on, 'work')},nosuid,nodev${kind === 'user' ? ',userxattr' : ''}`;
  const mounts = [
    ...(template === undefined ? [] : [[`${disk}.img`, disk, 'ext4', 'loop,nosuid,nodev,noatime,barrier=0,noinit_itable']]),
    ...(root === undefined ? [] : [['overlay', join(view, 'root'), 'overlay', stack(root, join(disk, 'root'))]]),
    ...(layer === undefined || !hasOverlay ? [] : [['overlay', join(disk, 'home'), 'overlay', stack([join(layer, 'home')], disk)]]),
    ...Object.entries(tmpfsMiB).map(([name, sizeMiB]) => ['tmpfs', join(view, name), 'tmpfs', renderTmpfsOptions(sizeMiB)]),
  ];
  const toField = (field: string) => field.replace(/\s/g, (space) => `\\${space.charCodeAt(0).toString(8).padStart(3, '0')}`);
  return mounts.map((fields) => `${fields.map(toField).join(' ')}\n`).join('');
}

/** Wraps the command to run in the namespace of the holder with this pid, with rights over all files of the sandbox. */
export function renderEnterDisk(access: DiskAccess, holder: number, command: readonly string[]): string[] {
  const enter = ['nsenter', '--target', String(holder), '--mount'];
  if (access.kind === 'root') return [...enter, ...command];
  return [...enter, '--user', '--preserve-credentials', 'unshare', '--user', '--map-root-user', ...command];
}

export function refuseSeparators(path: string): void {
  if (!/[:,\\]/.test(path)) return;
  throw new RolloutError('sandbox-start-failed', `${path} contains a colon, a comma or a backslash, which mount options cannot represent`);
}
