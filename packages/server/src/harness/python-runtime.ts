// A copy of this machine's Python that runs in any image: the interpreter, its standard library, every library that they and the installed
// packages load, and the loader. It sets no variables, so that an image's own Python is not disturbed by the harness that starts it.

import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '../base/run-program.ts';
import { harnessFolder } from '../sandbox/layout.ts';

const copy = `set -e
python=$1; to=$2
real=$(readlink -f "$("$python" -c 'import sys; print(sys.executable)')")
lib=$("$python" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
name=$(basename "$lib")
mkdir -p "$to/bin" "$to/lib/$name" "$to/libs"
cp -L "$real" "$to/bin/python3.real"
tar -c -h -C "$lib" --exclude=site-packages --exclude=dist-packages --exclude=test --exclude=__pycache__ --exclude='config-*' . | tar -x -C "$to/lib/$name"
rm -f "$to/lib/$name/sitecustomize.py"
find "$to/lib" "$to/site" -name '*.so*' -type f > "$to/objects"
(echo "$to/bin/python3.real"; cat "$to/objects") | xargs ldd 2>/dev/null | grep -o '/[^ ]*\\.so[^ ]*' | grep -v "^$to/" | sort -u |
  while read -r file; do case $file in *:) ;; *) cp -nL "$file" "$to/libs/" ;; esac; done
rm "$to/objects"
ls "$to/libs" | grep -E '^ld-linux' | head -n 1
echo "$name"`;

/** `folder/site` holds the packages. The program is `folder/bin/python3`. */
export async function copyPython(python: string, folder: string, signal: AbortSignal | undefined): Promise<void> {
  const [loader = '', name = ''] = (await runProgram(['bash', '-c', copy, 'bash', python, folder], { signal })).trim().split('\n');
  const inside = `${harnessFolder}/python`;
  await writeFile(join(folder, 'lib', name, 'sitecustomize.py'), `import sys\nsys.path.append('${inside}/site')\n`);
  const start = `#!/bin/sh\nexec ${inside}/libs/${loader} --library-path ${inside}/libs ${inside}/bin/python3.real -s "$@"\n`;
  await writeFile(join(folder, 'bin/python3'), start);
  await chmod(join(folder, 'bin/python3'), 0o755);
}
