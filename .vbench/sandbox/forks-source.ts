// The inputs of the fork benchmark, built locally without a network: a git repository, wheels, and an image with git and Python.

import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makePythonImage } from '@millrace/testkit';

const run = promisify(execFile);

/** `repository.git` with three commits, and four wheels in `wheels`. */
export async function makeSource(folder: string): Promise<void> {
  await mkdir(join(folder, 'wheels'), { recursive: true });
  await run('/usr/bin/python3', ['-c', makeWheels, join(folder, 'wheels')]);
  const [work, bare] = [`${folder}-work`, join(folder, 'repository.git')];
  const git = (...args: string[]) => run('git', ['-C', work, '-c', 'user.name=bench', '-c', 'user.email=bench@localhost', ...args]);
  await mkdir(work);
  await git('init', '--quiet');
  for (let commit = 0; commit < 3; commit += 1) {
    const part = join(work, `part-${commit}`);
    await mkdir(part);
    for (let file = 0; file < 500; file += 1) await writeFile(join(part, `file-${file}.txt`), `${commit} ${file}\n`.repeat(200));
    await git('add', '.');
    await git('commit', '--quiet', '--message', `part ${commit}`);
  }
  await run('git', ['clone', '--quiet', '--bare', work, bare]);
}

const makeWheels = `
import sys, zipfile
body = 'value = 1\\n' + ''.join('def f%d(a, b=1):\\n    """Adds."""\\n    return [a + b * i for i in range(%d)]\\n' % (i, i) for i in range(100))
for name in ['bench%d' % i for i in range(4)]:
    with zipfile.ZipFile('%s/%s-1.0-py3-none-any.whl' % (sys.argv[1], name), 'w', zipfile.ZIP_DEFLATED) as wheel:
        files = {'%s/__init__.py' % name: ''} | {'%s/part%d.py' % (name, i): body for i in range(75)}
        info = name + '-1.0.dist-info'
        files[info + '/METADATA'] = 'Metadata-Version: 2.1\\nName: %s\\nVersion: 1.0\\n' % name
        files[info + '/WHEEL'] = 'Wheel-Version: 1.0\\nGenerator: bench\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'
        files[info + '/RECORD'] = ''.join('%s,,\\n' % path for path in [*files, info + '/RECORD'])
        for path, text in files.items(): wheel.writestr(path, text)
`;

/** This machine's Python with pip, and its git. */
export async function makeGitImage(folder: string): Promise<void> {
  await makePythonImage(folder);
  const script = `set -e; mkdir -p "$1/usr/lib/git-core" "$1/usr/share/git-core/templates"
cp /usr/bin/git "$1/usr/bin/"; for name in git git-upload-pack; do ln -s ../../bin/git "$1/usr/lib/git-core/$name"; done
ln -s git "$1/usr/bin/git-upload-pack"
for file in $(ldd /usr/bin/git | grep -o '/[^ ]*lib[^ ]*\\.so[^ ]*' | sort -u); do cp -nL "$file" "$1/usr/lib/"; done`;
  await run('bash', ['-c', script, 'bash', folder]);
}
