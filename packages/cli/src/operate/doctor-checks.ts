// The checks of `millrace doctor`: each looks at one thing of this machine and says what it saw, how that stands, and the one
// line that mends it. They start nothing and change nothing.

import { constants } from 'node:fs';
import { access, readFile, statfs } from 'node:fs/promises';
import { createServer } from 'node:net';
import { availableParallelism, freemem, totalmem } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import {
  type CgroupBase,
  controllers,
  findCgroups,
  measureSocketPath,
  networkFileSystemOf,
  probeApptainer,
  probeBubblewrap,
} from '@millrace/server';
import { toBytes, toCount } from '../terminal/text.ts';

export interface Check {
  readonly name: string;
  /** `fail`: Millrace cannot work here. `warn`: it can, but something will hurt. */
  readonly level: 'ok' | 'warn' | 'fail';
  readonly seen: string;
  readonly remedy?: string;
}

export interface DoctorOptions {
  readonly data: string;
  readonly run: string;
  readonly driver: 'bubblewrap' | 'apptainer';
  readonly tokenizer?: string;
  readonly host: string;
  readonly port: number;
}

export async function runChecks(options: DoctorOptions): Promise<Check[]> {
  const checks = [
    () => checkNode(process.versions.node),
    checkBubblewrap,
    () => checkProgram('bash', { needed: true, why: 'agents work in it' }),
    () => checkProgram('tmux', { needed: false, why: 'only the benchmark compares with it' }),
    () => checkApptainer(options.driver === 'apptainer'),
    () => checkStore(options.data),
    () => checkDisk(options.data),
    () => checkRunFolder(options.run),
    () => checkMemory(totalmem(), freemem()),
    () => checkCores(availableParallelism()),
    async () => checkOpenFiles(await readText('/proc/self/limits')),
    async () => checkLimits(await findCgroups({ enter: false }), process.getuid?.() === 0),
    ...(options.tokenizer === undefined ? [] : [() => checkTokenizer(options.tokenizer ?? '')]),
    () => checkPort(options.host, options.port),
  ];
  return Promise.all(checks.map(async (check) => check()));
}

export function checkNode(version: string): Check {
  const [major = 0] = version.split('.').map(Number);
  const good = major >= 24;
  return {
    name: 'Node.js',
    level: good ? 'ok' : 'fail',
    seen: version,
    ...(good ? {} : { remedy: 'npm ci, then npm run millrace: it brings Node.js 24' }),
  };
}

async function checkBubblewrap(): Promise<Check> {
  const probe = await probeBubblewrap();
  if (probe.ok) return { name: 'bubblewrap', level: 'ok', seen: `${probe.version}, user namespaces work` };
  return { name: 'bubblewrap', level: 'fail', seen: probe.reason, remedy: probe.remedy };
}

async function checkProgram(name: string, { needed, why }: { readonly needed: boolean; readonly why: string }): Promise<Check> {
  const path = await findProgram(name);
  if (path !== undefined) return { name, level: 'ok', seen: path };
  return { name, level: needed ? 'fail' : 'warn', seen: `not found; ${why}`, remedy: `sudo apt-get install -y ${name}` };
}

/** Needed only where sandboxes run on images. */
async function checkApptainer(needed: boolean): Promise<Check> {
  const name = 'apptainer';
  const probe = await probeApptainer();
  if (probe.ok) return { name, level: 'ok', seen: `${probe.version}, starts a container as this user` };
  if (!needed && probe.version === undefined)
    return { name, level: 'ok', seen: `${probe.reason}, and not needed: sandboxes run on bubblewrap` };
  return { name, level: needed ? 'fail' : 'warn', seen: probe.reason, remedy: probe.remedy };
}

function checkStore(data: string): Check {
  const name = 'store folder';
  const path = resolve(data);
  const type = networkFileSystemOf(path);
  if (type === undefined) return { name, level: 'ok', seen: `${path} is on a local disk` };
  return {
    name,
    level: 'fail',
    seen: `${path} is on ${type}, whose locks SQLite cannot trust`,
    remedy: 'set `data` to a folder on a disk of this machine',
  };
}

async function checkDisk(data: string): Promise<Check> {
  const { bavail, bsize } = await statfs(await nearestFolder(data));
  const free = bavail * bsize;
  const gib = 1 << 30;
  const level = free < gib / 4 ? 'fail' : free < 5 * gib ? 'warn' : 'ok';
  return {
    name: 'free disk',
    level,
    seen: `${toBytes(free)} under ${resolve(data)}`,
    ...(level === 'ok' ? {} : { remedy: 'free some space, or set `data` elsewhere' }),
  };
}

export async function checkRunFolder(run: string): Promise<Check> {
  const name = 'run folder';
  const path = resolve(run);
  const { bytes, maxBytes } = measureSocketPath(path);
  if (bytes > maxBytes) {
    const seen = `${path} is too long: a socket in it would have ${bytes} bytes of ${maxBytes}`;
    return { name, level: 'fail', seen, remedy: 'set `run` to a shorter path, such as /tmp/millrace' };
  }
  const folder = await nearestFolder(path);
  const writable = await access(folder, constants.W_OK).then(
    () => true,
    () => false,
  );
  if (!writable) return { name, level: 'fail', seen: `${folder} cannot be written`, remedy: 'set `run` to a folder of your own' };
  const type = networkFileSystemOf(path);
  if (type !== undefined)
    return { name, level: 'fail', seen: `${path} is on ${type}, which holds no sockets`, remedy: 'set `run` to a folder in /tmp' };
  return { name, level: 'ok', seen: `${path}, short enough for sockets` };
}

export function checkMemory(total: number, free: number): Check {
  const level = total < 2 * (1 << 30) ? 'warn' : 'ok';
  const remedy = level === 'ok' ? {} : { remedy: 'run fewer workers (--workers 1) and fewer run slots' };
  return { name: 'memory', level, seen: `${toBytes(free)} free of ${toBytes(total)}`, ...remedy };
}

function checkCores(cores: number): Check {
  return {
    name: 'cores',
    level: 'ok',
    seen: `${cores}; serve starts ${Math.min(8, cores)} ${cores === 1 ? 'worker' : 'workers'} by default`,
  };
}

/** Every running rollout holds a few files: its socket, its terminal, a connection. */
export function checkOpenFiles(limits: string | undefined): Check {
  const name = 'open files';
  const [, soft, hard] = /^Max open files\s+(\S+)\s+(\S+)/m.exec(limits ?? '') ?? [];
  if (soft === undefined) return { name, level: 'warn', seen: 'the limit could not be read' };
  const seen = Number.isNaN(Number(soft)) ? soft : toCount(Number(soft));
  if (soft === 'unlimited' || Number(soft) >= 4096) return { name, level: 'ok', seen };
  const wanted = hard === 'unlimited' ? 65_536 : Math.min(65_536, Number(hard));
  return { name, level: 'warn', seen: `${seen}, few for many sandboxes`, remedy: `ulimit -n ${wanted}` };
}

/** Who keeps a sandbox to its limits: control groups, or limits of its single processes. */
export function checkLimits(bases: readonly CgroupBase[], isRoot: boolean): Check {
  const name = 'sandbox limits';
  const grouped = controllers.filter((controller) => bases.some((base) => base.controller === controller));
  const single = controllers.filter((controller) => !grouped.includes(controller));
  const versions = [...new Set(bases.map(({ version }) => `v${version}`))].join(' and ');
  const kept = grouped.length === 0 ? [] : [`${grouped.join(', ')} by cgroups ${versions}`];
  const always = 'open files by rlimits, disk by its size';
  if (single.length === 0) return { name, level: 'ok', seen: [...kept, always].join('; ') };
  const ways = {
    cpu: 'cpu not at all',
    memory: 'memory by rlimits, for each process alone',
    pids: isRoot ? 'pids not at all' : 'pids by rlimits',
  };
  const remedy = 'systemd-run --user --scope -p Delegate=yes millrace serve';
  return { name, level: 'warn', seen: [...kept, ...single.map((controller) => ways[controller]), always].join('; '), remedy };
}

export async function checkTokenizer(folder: string): Promise<Check> {
  const name = 'tokenizer';
  // The worker proves it at its start; whether it can be reached from here is all that is asked now.
  if (/^https?:\/\//.test(folder)) {
    const reply = await fetch(new URL('/health', folder), { signal: AbortSignal.timeout(5000) }).catch((error: Error) => error);
    if (!(reply instanceof Error) && reply.ok) return { name, level: 'ok', seen: `${folder} answers` };
    const seen = reply instanceof Error ? `${folder} cannot be reached: ${reply.message}` : `${folder}/health answered ${reply.status}`;
    return { name, level: 'fail', seen, remedy: 'start the backend, or give the folder with tokenizer.json' };
  }
  for (const file of ['tokenizer.json', 'tokenizer_config.json']) {
    const text = await readText(join(folder, file));
    const remedy = `copy ${file} of the model into ${folder}`;
    if (text === undefined) return { name, level: 'fail', seen: `${join(folder, file)} cannot be read`, remedy };
    try {
      JSON.parse(text);
    } catch {
      return { name, level: 'fail', seen: `${join(folder, file)} is not JSON`, remedy };
    }
  }
  return { name, level: 'ok', seen: resolve(folder) };
}

export async function checkPort(host: string, port: number): Promise<Check> {
  const name = 'port';
  const server = createServer();
  const failed = await new Promise<NodeJS.ErrnoException | undefined>((done) => {
    server.once('error', done);
    server.listen(port, host, () => done(undefined));
  });
  await new Promise((done) => (failed === undefined ? server.close(done) : done(undefined)));
  if (failed === undefined) return { name, level: 'ok', seen: `${host}:${port} is free` };
  const taken = failed.code === 'EADDRINUSE';
  const seen = taken
    ? `${host}:${port} is taken, by a service that runs already or by another program`
    : `${host}:${port}: ${failed.message}`;
  return { name, level: taken ? 'warn' : 'fail', seen, remedy: 'millrace serve --port 0 takes a free one' };
}

async function findProgram(name: string): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? '').split(':')) {
    const path = join(folder, name);
    if (
      folder !== '' &&
      (await access(path, constants.X_OK).then(
        () => true,
        () => false,
      ))
    )
      return path;
  }
  return undefined;
}

async function nearestFolder(path: string): Promise<string> {
  for (let folder = resolve(path); ; folder = dirname(folder)) {
    if (
      folder === '/' ||
      (await access(folder).then(
        () => true,
        () => false,
      ))
    )
      return folder;
  }
}

async function readText(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined);
}
