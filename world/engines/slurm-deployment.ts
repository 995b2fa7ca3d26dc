// A deployment of `millrace slurm` on the cluster of a test: its configuration, which is that of docs/slurm.md with a fake LLM server in the
// place of vLLM, the commands of its user, and what must be gone when it is down.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { join, relative, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { machineView } from '@millrace/protocol';
import { probeApptainer } from '@millrace/sandbox';
import { makeTinyImage, qwen3Folder } from '@millrace/testkit';
import { z } from 'zod';
import { type CommandResult, findSlurmSkip, type SlurmCluster } from './slurm-cluster.ts';

const root = resolve(import.meta.dirname, '../..');

export const upReply = z.object({ url: z.string(), key: z.string(), node: z.string() });
const jobList = z.array(z.object({ id: z.string(), role: z.string(), state: z.string(), node: z.string(), elapsed: z.string() }));
const statusReply = z.object({ up: z.boolean(), jobs: jobList, machines: z.array(machineView) });

/** Why this machine cannot run a deployment with Apptainer, if it cannot. */
export async function findDeploymentSkip(): Promise<string | false> {
  const apptainer = await probeApptainer();
  return findSlurmSkip() || (apptainer.ok ? false : `${apptainer.reason}; try: ${apptainer.remedy}`);
}

/** Runs `millrace` on the login node. */
export type Millrace = (...args: string[]) => Promise<CommandResult>;

interface DeploymentOptions {
  readonly name: string;
  readonly leaseMs: number;
  readonly workerNodes?: number;
  readonly graceSeconds?: number;
  readonly pipeline?: Readonly<Record<string, number>>;
  /** What runs sandboxes; Apptainer, with a small image, unless set. */
  readonly driver?: 'bubblewrap';
  /** Time limit of every job; half an hour unless set. */
  readonly time?: string;
  /** The policy of the LLM server, a module in this repository; that of the chaos run unless set. */
  readonly policy?: string;
  readonly latencyMs?: number;
}

interface PreparedDeployment {
  readonly millrace: Millrace;
  /** The words before the arguments of `millrace`. */
  readonly command: readonly string[];
}

export async function prepareDeployment(cluster: SlurmCluster, options: DeploymentOptions): Promise<PreparedDeployment> {
  // Room for all of them on two machines: what is measured is the takeover, not the queue.
  const { name, leaseMs, workerNodes = 3, graceSeconds = 20, pipeline = { initSlots: 2, readySlots: 16 } } = options;
  const toView = (path: string) => join(cluster.repository, relative(root, resolve(root, path)));
  const image = join(cluster.home, 'image');
  await mkdir(image);
  await makeTinyImage(image);
  const node = toView(process.execPath);
  const testkit = 'packages/testkit/src';
  const server = toView(`${testkit}/fake-backend/process/main.ts`);
  const policy = toView(options.policy ?? `${testkit}/chaos/scene/chaos-play.ts`);
  const config = {
    model: { tokenizer: toView(qwen3Folder()) },
    sandbox: options.driver ? { driver: options.driver } : { driver: 'apptainer', image, images: join(cluster.home, 'images') },
    pipeline: { leaseMs, ...pipeline },
    slurm: {
      name,
      network: 'lo',
      time: options.time ?? '30:00',
      data: join(cluster.home, 'store'),
      graceSeconds,
      head: { cpus: 1 },
      worker: { nodes: workerNodes, cpus: 3, processes: 1, labels: { kind: 'cpu' } },
      llm: { nodes: 1, cpus: 1, command: `${node} ${server} --policy ${policy} --latency ${options.latencyMs ?? 1500} --port {port}` },
    },
  };
  await writeFile(join(cluster.home, 'cluster.json'), JSON.stringify(config, undefined, 2));
  execFileSync('chown', ['-R', '65534:65534', cluster.home]);
  const command = [node, '--disable-warning=ExperimentalWarning', toView('packages/cli/src/main.ts')];
  return { command, millrace: (...args) => cluster.run([...command, ...args, '--config', 'cluster.json']) };
}

export function succeed(result: CommandResult): CommandResult {
  assert.equal(result.code, 0, `${result.stdout}\n${result.stderr}`);
  return result;
}

export async function readStatus(millrace: Millrace): Promise<z.infer<typeof statusReply>> {
  return statusReply.parse(JSON.parse(succeed(await millrace('slurm', 'status', '--json')).stdout));
}

export async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + 240_000;
  while (!(await isSo())) {
    assert.ok(performance.now() < endsAt, `${what}: not after four minutes`);
    await pause(200);
  }
}

/** Those of the deployment's sandboxes, on the disk of the nodes. */
export async function listRunFolders(name: string): Promise<string[]> {
  return (await readdir('/tmp')).filter((folder) => folder.startsWith(`mr-${name}-`));
}

interface EndedDeployment {
  readonly name: string;
  readonly url: string;
  /** Run folders of earlier tests. */
  readonly before: readonly string[];
}

export async function checkNothingLeft(cluster: SlurmCluster, millrace: Millrace, { name, url, before }: EndedDeployment): Promise<void> {
  const { up, jobs } = await readStatus(millrace);
  assert.deepEqual([up, jobs], [false, []]);
  assert.equal((await cluster.run(['squeue', '-h'])).stdout, '');
  await until('no process is left', async () => (await cluster.jobProcesses()).length === 0);
  const folders = (await listRunFolders(name)).filter((folder) => !before.includes(folder));
  assert.ok(folders.length <= 1, `only that of the dead node may be left: ${folders}`);
  const socket = createConnection(Number(new URL(url).port), new URL(url).hostname);
  await assert.rejects(new Promise((done, fail) => socket.once('connect', done).once('error', fail)), /ECONNREFUSED/);
}
