// What is loaded into the processes of a service, so that its clock can be stepped and its disk made slow while it runs: libfaketime,
// which is a Debian package, and a small library that is compiled here.

import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('./slow-sync.c', import.meta.url));
const fakeTimePaths = ['/usr/lib/*/faketime/libfaketimeMT.so.1', '/usr/lib*/faketime/libfaketimeMT.so.1'];

/** A control that this machine lacks, with what to install. */
interface MissingControl {
  readonly control: 'clock' | 'sync';
  readonly reason: string;
}

export interface Preload {
  /** For the processes of the service. */
  readonly env: Readonly<Record<string, string>>;
  readonly missing: readonly MissingControl[];
  /** Every process sees the step within a second; timers and durations do not change. */
  setClock(offsetMs: number): void;
  /** From here on every fsync and fdatasync takes this much longer. */
  setSyncDelay(ms: number): void;
  /** Calls that were delayed so far. */
  countDelayed(): number;
}

export function openPreload(folder: string): Preload {
  const clock = openClock(folder);
  const sync = openSync(folder);
  const libraries = [clock, sync].flatMap((control) => ('library' in control ? [control.library] : []));
  return {
    env: {
      LD_PRELOAD: libraries.join(':'),
      FAKETIME_TIMESTAMP_FILE: join(folder, 'clock'),
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
      NO_FAKE_STAT: '1',
      MILLRACE_SLOW_SYNC: join(folder, 'sync'),
    },
    missing: [clock, sync].flatMap((control) => ('reason' in control ? [control] : [])),
    setClock: (offsetMs) => writeClock(folder, offsetMs),
    setSyncDelay(ms) {
      const page = readFileSync(join(folder, 'sync'));
      page.writeBigInt64LE(BigInt(Math.round(ms)), 0);
      // In place: the processes have mapped this file. A count that is written back a little too low does not matter.
      writeFileSync(join(folder, 'sync'), page, { flag: 'r+' });
    },
    countDelayed: () => Number(readFileSync(join(folder, 'sync')).readBigInt64LE(8)),
  };
}

type Control = MissingControl | { readonly library: string };

function openClock(folder: string): Control {
  writeClock(folder, 0);
  const [library] = fakeTimePaths.flatMap((pattern) => globSync(pattern));
  return library === undefined ? { control: 'clock', reason: 'there is no libfaketime; try: apt-get install libfaketime' } : { library };
}

/** Replaced by a rename, so that no process reads half of it. */
function writeClock(folder: string, offsetMs: number): void {
  const path = join(folder, 'clock');
  writeFileSync(`${path}.new`, `${offsetMs < 0 ? '-' : '+'}${(Math.abs(offsetMs) / 1000).toFixed(3)}\n`);
  renameSync(`${path}.new`, path);
}

function openSync(folder: string): Control {
  writeFileSync(join(folder, 'sync'), Buffer.alloc(4096));
  const library = join(folder, 'slow-sync.so');
  try {
    execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'], { stdio: ['ignore', 'ignore', 'pipe'] });
  } catch (error) {
    return { control: 'sync', reason: `no C compiler works here (${String(error).split('\n')[0]}); try: apt-get install gcc libc6-dev` };
  }
  if (!existsSync(library)) return { control: 'sync', reason: `cc wrote no ${library}` };
  return { library };
}
