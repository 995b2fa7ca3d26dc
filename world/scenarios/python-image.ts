// An unpacked image for Apptainer with this machine's Python and git, and packages from PyPI.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { makePythonImage } from '@millrace/testkit';

/** Throws if PyPI cannot be reached and there are packages to install. */
export async function makeGitImage(folder: string, packages: readonly string[] = []): Promise<void> {
  await makePythonImage(folder);
  const script = `set -e; image=$1; shift
if [ $# -gt 0 ]; then python3 -m pip install --quiet --disable-pip-version-check --upgrade --target "$image/usr/lib/python3/dist-packages" "$@"; fi
cp -L "$(type -P git)" "$image/usr/bin/git"; mkdir -p "$image/usr/share/git-core/templates"
for name in awk cmp comm diff expr install join md5sum nl paste patch printf realpath sha256sum split timeout uniq which xargs; do path=$(type -P $name) && cp -L "$path" "$image/usr/bin/$name"; done
for file in $(ldd "$image"/usr/bin/* 2>/dev/null | grep -o '/[^ ]*lib[^ ]*\\.so[^ ]*' | sort -u); do cp -nL "$file" "$image/usr/lib/"; done`;
  await promisify(execFile)('bash', ['-c', script, 'bash', folder, ...packages]);
}
