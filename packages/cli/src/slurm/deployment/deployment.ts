// The files of a deployment, in a folder that the login node and all compute nodes see: its key, its configuration, the scripts that
// were submitted, the logs, and the address of the head while it runs. Jobs are found by their names, so nothing here can be out of date.

import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { writeWhole } from '@millrace/base/write-whole';
import type { ServiceConfig, SlurmRole } from '@millrace/server';
import { z } from 'zod';

/** What the head writes when its API answers. */
const headRecord = z.object({
  url: z.string(),
  /** The Slurm node. */
  node: z.string(),
  jobId: z.string(),
  startedAt: z.string(),
});
export type HeadRecord = z.infer<typeof headRecord>;

/** Kept after the head has ended, for the next one. */
const homeRecord = z.object({
  /** The node that holds the store; absent where every node can reach it. */
  node: z.string().optional(),
  port: z.int(),
});
type HomeRecord = z.infer<typeof homeRecord>;

export class Deployment {
  readonly name: string;
  readonly folder: string;

  constructor({ slurm }: Pick<ServiceConfig, 'slurm'>) {
    this.name = slurm.name;
    this.folder = resolve(slurm.folder, slurm.name);
  }

  get configPath(): string {
    return join(this.folder, 'config.json');
  }

  get keyPath(): string {
    return join(this.folder, 'key');
  }

  get logFolder(): string {
    return join(this.folder, 'logs');
  }

  /** Its presence asks the head to delete the store when it ends. */
  /** What rollouts continue from on other nodes. */
  get checkpoints(): string {
    return join(this.folder, 'checkpoints');
  }

  get purgePath(): string {
    return join(this.folder, 'purge');
  }

  scriptPath(role: SlurmRole): string {
    return join(this.folder, `${role}.sbatch`);
  }

  jobName(role: SlurmRole): string {
    return `millrace-${this.name}-${role}`;
  }

  async create(): Promise<void> {
    await mkdir(this.logFolder, { recursive: true, mode: 0o700 });
    await mkdir(join(this.folder, 'released'), { recursive: true, mode: 0o700 });
  }

  /** The key of the API; made once, so that clients keep it. */
  async makeKey(): Promise<string> {
    const known = await this.readKey();
    if (known !== undefined) return known;
    await writeWhole(this.keyPath, randomBytes(24).toString('base64url'));
    return (await this.readKey()) ?? '';
  }

  async readKey(): Promise<string | undefined> {
    return (await readFile(this.keyPath, 'utf8').catch(() => '')).trim() || undefined;
  }

  readHead(): Promise<HeadRecord | undefined> {
    return readRecord(join(this.folder, 'head.json'), headRecord);
  }

  async writeHead(head: HeadRecord): Promise<void> {
    await writeWhole(join(this.folder, 'head.json'), JSON.stringify(head));
  }

  async removeHead(): Promise<void> {
    await rm(join(this.folder, 'head.json'), { force: true });
  }

  readHome(): Promise<HomeRecord | undefined> {
    return readRecord(join(this.folder, 'home.json'), homeRecord);
  }

  async writeHome(home: HomeRecord): Promise<void> {
    await writeWhole(join(this.folder, 'home.json'), JSON.stringify(home));
  }

  /** Remembers that a job was asked to leave: it is in the queue until it has. */
  async markReleased(jobId: string): Promise<void> {
    await writeFile(join(this.folder, 'released', jobId), '');
  }

  async isReleased(jobId: string): Promise<boolean> {
    return await readFile(join(this.folder, 'released', jobId)).then(
      () => true,
      () => false,
    );
  }

  async forgetReleased(): Promise<void> {
    await rm(join(this.folder, 'released'), { recursive: true, force: true });
  }
}

async function readRecord<T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const parsed = schema.safeParse(JSON.parse(text));
  if (!parsed.success) throw new Error(`${path} is damaged: ${z.prettifyError(parsed.error)}; delete it`);
  return parsed.data;
}
