// The /etc of bubblewrap sandboxes: a copy of the machine's files that programs need to run, and accounts of its own. One folder is one mount,
// where the single files would be most of a sandbox's mounts. A change on the machine makes a new copy for the sandboxes that start later.

import { readdirSync, statSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Clock, systemClock } from '@millrace/base/clock';
import { runProgram } from '@millrace/base/run-program';
import { etcContent } from '../layout.ts';
import { makeOnce } from '../run-folder/make-once.ts';

/** No accounts, no keys, no configuration that could contain a password. */
const names =
  /^(alternatives|ca-certificates|debian_version|fonts|java-.*|ld\.so\.(cache|conf|conf\.d)|localtime|magic|mime\.types|nsswitch\.conf|os-release|perl|protocols|python.*|services|terminfo|timezone)$/;
const tlsFiles = ['ssl/certs', 'ssl/openssl.cnf'];

/** Between two looks at the machine's files: each is some thirty calls of the kernel, for a folder that changes once a month. */
const lookMs = 1000;

/** Returns what finds the folder. Inside a folder of /etc, files that are added or removed at its top are noticed, within a second. */
export function openHostEtc(runDir: string, etc = '/etc', clock: Clock = systemClock): () => Promise<string> {
  let [seen, folder]: [string, Promise<string> | undefined] = ['', undefined];
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = clock.monotonic();
    if (folder !== undefined && nowMs - lookedAtMs < lookMs) return folder;
    lookedAtMs = nowMs;
    const wanted = [...readdirSync(etc).filter((name) => names.test(name)), ...tlsFiles];
    const found = wanted.flatMap((name) => describe(join(etc, name), name));
    const content = JSON.stringify([found, etcContent]);
    if (folder === undefined || content !== seen) folder = makeOnce(runDir, { kind: 'etc', content }, (scratch) => copy(found, scratch));
    seen = content;
    return folder;
  };
}

interface EtcFile {
  readonly path: string;
  /** Below /etc. */
  readonly name: string;
  readonly bytes: number;
  readonly changedMs: number;
}

function describe(path: string, name: string): EtcFile[] {
  const found = statSync(path, { throwIfNoEntry: false });
  return found ? [{ path, name, bytes: found.size, changedMs: found.ctimeMs }] : [];
}

async function copy(found: readonly EtcFile[], to: string): Promise<void> {
  await mkdir(join(to, 'ssl'));
  for (const { path, name } of found) await runProgram(['cp', '-aH', '--', path, dirname(join(to, name))]).catch(() => {}); // not all of it can be read
  for (const [name, text] of Object.entries(etcContent)) await writeFile(join(to, name), text);
  await runProgram(['chmod', '-R', 'a+rX', '--', to]);
}
