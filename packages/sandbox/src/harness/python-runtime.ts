// A copy of this machine's Python, next to the packages of a harness: the interpreter and its standard library.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '@millrace/base/run-program';
import { harnessFolder } from '../layout.ts';
import { bundleLibraries } from './bundle.ts';

/** Python finds its library next to itself: `bin/python3.real` and `lib/python3.12`. Prints the name of the latter. */
const copyPython = `set -e
python=$1; to=$2
real=$(readlink -f "$("$python" -c 'import sys; print(sys.executable)')")
lib=$("$python" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
name=$(basename "$lib")
mkdir -p "$to/bin" "$to/lib/$name"
cp -L "$real" "$to/bin/python3.real"
tar -c -h -C "$lib" --exclude=site-packages --exclude=dist-packages --exclude=test --exclude=__pycache__ --exclude='config-*' . | tar -x -C "$to/lib/$name"
rm -f "$to/lib/$name/sitecustomize.py"
echo "$name"`;

/** `python/site` below the folder holds the packages. */
export async function addPython(python: string, folder: string, signal: AbortSignal | undefined): Promise<void> {
  const own = join(folder, 'python');
  const name = (await runProgram(['bash', '-c', copyPython, 'bash', python, own], { signal })).trim();
  await writeFile(join(own, 'lib', name, 'sitecustomize.py'), `import sys\nsys.path.append('${harnessFolder}/python/site')\n`);
  const paths = { program: 'python/bin/python3.real', start: 'bin/python3', loads: ['python/lib', 'python/site'] };
  await bundleLibraries({ folder, ...paths, args: ['-s'], signal });
}
