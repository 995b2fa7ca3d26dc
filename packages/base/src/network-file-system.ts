// Detects whether a path is on a network file system, where locks, shared memory and fsync of a database are unreliable.

import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const networkTypes = new Set(
  'nfs nfs4 lustre gpfs cifs smb3 smbfs ceph beegfs fhgfs afs 9p glusterfs pvfs2 orangefs panfs wekafs ocfs2 gfs2 ncpfs coda'.split(' '),
);
const networkFuse = /^fuse\.(sshfs|glusterfs|ceph|ceph-fuse|s3fs|goofys|gcsfuse|rclone|mfs|moosefs|juicefs|curvefs|davfs2?)$/;

/** The type of the network file system under `path`, which need not exist yet; absent on a local one. */
export function networkFileSystemOf(path: string, mounts: string = readMounts()): string | undefined {
  const real = resolveExisting(resolve(path));
  let best = { point: '', type: '' };
  for (const line of mounts.split('\n')) {
    const [, point = '', type = ''] = line.split(' ').map(unescapeField);
    // A later mount on the same mount point hides the earlier one.
    if (isUnder(real, point) && point.length >= best.point.length) best = { point, type };
  }
  return networkTypes.has(best.type) || networkFuse.test(best.type) ? best.type : undefined;
}

function readMounts(): string {
  return existsSync('/proc/self/mounts') ? readFileSync('/proc/self/mounts', 'utf8') : '';
}

function resolveExisting(path: string): string {
  for (let known = path; ; known = dirname(known)) {
    if (existsSync(known)) return realpathSync(known) + path.slice(known.length);
    if (known === dirname(known)) return path;
  }
}

function isUnder(path: string, point: string): boolean {
  return point === '/' || path === point || (point !== '' && path.startsWith(`${point}/`));
}

function unescapeField(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
