// Where the programs of a PostgreSQL server are. Debian keeps them out of PATH, with a folder for each version.

import { access, constants, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { findOnPath } from '@millrace/base/find-on-path';

interface PostgresPrograms {
  readonly initdb: string;
  readonly postgres: string;
}

/** The newest version where there are several. Throws an Error that says what to install. */
export async function findPostgres(folder?: string): Promise<PostgresPrograms> {
  const folders = folder === undefined ? await listFolders() : [folder];
  for (const one of folders) {
    const programs = { initdb: join(one, 'initdb'), postgres: join(one, 'postgres') };
    if ((await isProgram(programs.initdb)) && (await isProgram(programs.postgres))) return programs;
  }
  throw new Error(
    `no PostgreSQL server was found in ${folders.join(', ') || 'PATH'}: install one (apt-get install postgresql, or conda install postgresql), or set slurm.postgresPrograms to the folder of initdb and postgres`,
  );
}

async function listFolders(): Promise<string[]> {
  const onPath = findOnPath(['initdb']);
  const byVersion = async (parent: string, toFolder: (version: string) => string) =>
    (await readdir(parent).catch(() => []))
      .sort((a, b) => Number.parseFloat(b.replace(/^\D*/, '')) - Number.parseFloat(a.replace(/^\D*/, '')))
      .map(toFolder);
  return [
    ...(onPath === undefined ? [] : [dirname(onPath)]),
    ...(await byVersion('/usr/lib/postgresql', (version) => `/usr/lib/postgresql/${version}/bin`)),
    ...(await byVersion('/usr', (name) => `/usr/${name}/bin`)).filter((path) => /^\/usr\/pgsql-/.test(path)),
    '/usr/local/pgsql/bin',
  ];
}

async function isProgram(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
