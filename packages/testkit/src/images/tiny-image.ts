// A small image for Apptainer from this machine's own programs: an unpacked directory with bash, the programs that the sandbox suite needs,
// and their libraries. Building it takes a third of a second and no network.

import { execFile } from 'node:child_process';
import { copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';

const programs =
  'basename bash cat chmod chown chroot cp cut date dd df dirname du echo env false find grep head hostname id kill ln ls mkdir mkfifo mknod mktemp mount mv nohup nsenter prlimit ps pwd python3 readlink rm rmdir sed seq setsid sh sleep sort stat stty tail tar tee touch tr true truncate umount uname unshare wc';

/** Lists the modules that these imports load: only they are copied to the image. */
const listPython =
  "import ctypes, os, resource, sys, time, traceback; print(*(getattr(m, '__file__', 0) or '' for m in sys.modules.values()), sep='\\n')";

/** Every file belongs to the calling user. */
export async function makeTinyImage(folder: string): Promise<void> {
  const run = promisify(execFile);
  const lines = async (file: string, args: string[]) => (await run(file, args)).stdout.split('\n').filter(Boolean);
  const files = await lines('bash', ['-c', `PATH=/usr/bin:/bin:/usr/sbin:/sbin; for name in ${programs}; do type -P $name; done; true`]);
  const modules = (await lines('/usr/bin/python3', ['-I', '-S', '-c', listPython]).catch(() => [])).filter((path) =>
    path.startsWith('/usr/lib/'),
  );
  const binaries = [...files, ...modules.filter((path) => path.endsWith('.so'))];
  const listed = await run('ldd', binaries).catch((error: Error & { stdout: string }) => error); // some are scripts
  const libraries = new Set([...listed.stdout.matchAll(/(?:=> |^\s+)(\/\S+) \(0x/gm)].flatMap(([, path]) => path ?? []));
  for (const name of ['dev', 'etc', 'home', 'proc', 'root', 'run', 'sys', 'tmp', 'usr/bin', 'usr/lib', 'var/tmp']) {
    await mkdir(join(folder, name), { recursive: true });
  }
  await symlink('usr/bin', join(folder, 'bin'));
  for (const name of ['lib', 'lib64']) await symlink('usr/lib', join(folder, name));
  await writeFile(join(folder, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/bash\n');
  await writeFile(join(folder, 'etc/group'), 'root:x:0:\n');
  for (const file of files) await copyFile(file, join(folder, 'usr/bin', basename(file)));
  for (const file of libraries) await copyFile(file, join(folder, 'usr/lib', basename(file)));
  for (const file of modules) {
    await mkdir(join(folder, dirname(file)), { recursive: true });
    await copyFile(file, join(folder, file));
  }
}

/** The small image with this machine's complete Python: the standard library, and packages from Debian such as IPython and pip. */
export async function makePythonImage(folder: string): Promise<void> {
  await makeTinyImage(folder);
  const script = `set -e; cp -r /usr/lib/python3 /usr/lib/python3.* "$1/usr/lib/"
for file in $(ldd $(find /usr/lib/python3 /usr/lib/python3.* -name '*.so') 2>/dev/null | grep -o '/[^ ]*lib[^ ]*\\.so[^ ]*' | grep -v /python3 | sort -u); do
  cp -nL "$file" "$1/usr/lib/"
done`;
  await promisify(execFile)('bash', ['-c', script, 'bash', folder]);
}
