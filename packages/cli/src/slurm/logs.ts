// `millrace slurm logs`: the logs of a deployment's jobs, which lie in its folder.

import { open, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '@millrace/base/clock';
import { type SlurmRole, slurmRoles } from '@millrace/server';
import { type Command, type Io, UsageError } from '../command/command.ts';
import type { Deployment } from './deployment/deployment.ts';
import { deploymentOptions, toSlurmSettings } from './deployment/slurm-options.ts';

export const logsCommand: Command = {
  name: 'slurm logs',
  summary: "Prints the logs of a deployment's jobs, the newest of each kind or all of one kind.",
  positional: '[role]',
  options: {
    ...deploymentOptions,
    lines: { type: 'string', short: 'n', value: 'N', describe: 'How many lines of each file; 50 by default.' },
    follow: { type: 'boolean', short: 'f', describe: 'Prints what is added, until Ctrl-C.' },
  },
  examples: ['millrace slurm logs', 'millrace slurm logs worker -n 200', 'millrace slurm logs head -f'],
  async run(args, io) {
    const { deployment } = toSlurmSettings(args, io);
    const [word] = args.positionals;
    const role = slurmRoles.find((one) => one === word);
    if (word !== undefined && role === undefined) throw new UsageError(`there is no log of ${word}; there are ${slurmRoles.join(', ')}`);
    const files = await listLogs(deployment, role);
    if (files.length === 0) throw new Error(`${deployment.logFolder} holds no log${role === undefined ? '' : ` of ${role}`}`);
    for (const file of files) {
      io.stdout.write(`==> ${file} <==\n`);
      for (const line of await readEnd(file, args.count('lines', 1) ?? 50)) io.stdout.write(`${line}\n`);
    }
    return args.flag('follow') ? await follow(files, io) : 0;
  },
};

/** The last lines of the newest log of a role; empty where there is none. */
export async function readLastLines(deployment: Deployment, role: SlurmRole, lines: number): Promise<string[]> {
  const newest = (await listLogs(deployment, role)).at(-1);
  return newest === undefined ? [] : await readEnd(newest, lines);
}

/** Oldest first. */
async function listLogs(deployment: Deployment, role: SlurmRole | undefined): Promise<string[]> {
  const names = await readdir(deployment.logFolder).catch(() => []);
  const files = await Promise.all(
    names
      .filter((name) => name.endsWith('.log') && (role === undefined || name.startsWith(`${role}-`)))
      .map(async (name) => ({ path: join(deployment.logFolder, name), name, at: (await stat(join(deployment.logFolder, name))).mtimeMs })),
  );
  const sorted = files.sort((a, b) => a.at - b.at);
  if (role !== undefined) return sorted.map(({ path }) => path);
  return slurmRoles.flatMap((one) => sorted.filter(({ name }) => name.startsWith(`${one}-`)).at(-1)?.path ?? []);
}

async function readEnd(path: string, lines: number): Promise<string[]> {
  return (await readFile(path, 'utf8')).trimEnd().split('\n').slice(-lines);
}

const pollMs = 500;

async function follow(files: readonly string[], io: Io): Promise<number> {
  const stop = new AbortController();
  const release = io.onInterrupt(() => stop.abort());
  const read = new Map(await Promise.all(files.map(async (file) => [file, (await stat(file)).size] as const)));
  while (!stop.signal.aborted) {
    for (const [file, from] of read) {
      const text = await readFrom(file, from);
      read.set(file, from + text.length);
      io.stdout.write(text);
    }
    await sleep(pollMs, { signal: stop.signal }).catch(() => {}); // Ctrl-C ends it
  }
  release();
  return 0;
}

async function readFrom(path: string, from: number): Promise<Buffer> {
  await using file = await open(path);
  const { size } = await file.stat();
  const buffer = Buffer.alloc(Math.max(0, size - from));
  const { bytesRead } = await file.read(buffer, 0, buffer.length, from);
  return buffer.subarray(0, bytesRead);
}
