// Distinguishing network file systems from local disks.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { networkFileSystemOf } from '../src/network-file-system.ts';

const mounts = [
  '/dev/vda / ext4 rw 0 0',
  'tmpfs /no-such/local tmpfs rw 0 0',
  'server:/home /no-such nfs4 rw 0 0',
  'mds@tcp:/fs /no-such/scratch\\040space lustre rw 0 0',
  'host:/x /no-such/ssh fuse.sshfs rw 0 0',
  'some /no-such/overlay fuse.fuse-overlayfs rw 0 0',
  'a:/b /no-such/covered nfs rw 0 0',
  '/dev/vdb /no-such/covered xfs rw 0 0',
  '',
].join('\n');

for (const [path, type] of [
  ['/no-such/home/a/store.db', 'nfs4'],
  ['/no-such', 'nfs4'],
  ['/no-such-thing/store.db', undefined],
  ['/no-such/local/store.db', undefined],
  ['/no-such/localhost/store.db', 'nfs4'],
  ['/no-such/scratch space/store.db', 'lustre'],
  ['/no-such/ssh/store.db', 'fuse.sshfs'],
  ['/no-such/overlay/store.db', undefined],
  ['/no-such/covered/store.db', undefined],
] as const) {
  test(`${path} is on ${type ?? 'a local file system'}`, () => {
    assert.equal(networkFileSystemOf(path, mounts), type);
  });
}

test('without a mount table no path counts as a network file system', () => {
  assert.equal(networkFileSystemOf('/anything', ''), undefined);
});
