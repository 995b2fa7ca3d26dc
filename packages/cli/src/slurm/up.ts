// `millrace slurm up`: submits the jobs of a deployment and waits until its API answers. Run again, it submits what is missing.

import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { sleep } from '@millrace/base/clock';
import { writeWhole } from '@millrace/base/write-whole';
import { isAddress } from '@millrace/model';
import type { ServiceConfig, SlurmRole } from '@millrace/server';
import { type Arguments, type Command, type Io, UsageError } from '../command/command.ts';
import type { Deployment, HeadRecord } from './deployment/deployment.ts';
import { listJobs, type SlurmJob, submitJob } from './deployment/queue.ts';
import { renderScript } from './deployment/script.ts';
import { deploymentOptions, openHeadClient, type SlurmSettings, toSlurmSettings } from './deployment/slurm-options.ts';
import { readLastLines } from './logs.ts';

/** Slurm's own limit is at least this. */
const mostElements = 1000;
const pollMs = 500;

export const upCommand: Command = {
  name: 'slurm up',
  summary: 'Submits the jobs of a deployment, waits until its API answers, and prints its address and key.',
  options: {
    ...deploymentOptions,
    wait: { type: 'string', value: 'TIME', describe: 'How long to wait for the API, such as `10m`; until it answers by default.' },
    json: { type: 'boolean', describe: 'Writes JSON.' },
  },
  examples: ['millrace slurm up --config cluster.json', 'millrace slurm up --config cluster.json --wait 30m'],
  run: runUp,
};

async function runUp(args: Arguments, io: Io): Promise<number> {
  const settings = toSlurmSettings(args, io);
  const { config, deployment } = settings;
  const key = await writeDeployment(args, settings);
  await submitMissing(settings, io);
  const head = await waitForHead(deployment, { waitMs: args.duration('wait') ?? Number.POSITIVE_INFINITY, io });
  if (head === undefined) return 1;
  if (args.flag('json')) io.stdout.write(`${JSON.stringify({ url: head.url, key, node: head.node })}\n`);
  else io.stdout.write(renderUp(head, { key, name: deployment.name, nodes: config.slurm.worker.nodes, file: args.text('config') }));
  return 0;
}

/** What jobs start with: the folder, the configuration, the scripts and the key, which it returns. */
export async function writeDeployment(args: Arguments, settings: SlurmSettings): Promise<string> {
  const { config, deployment } = settings;
  checkConfig(config);
  await deployment.create();
  const key = await deployment.makeKey();
  await writeWhole(deployment.configPath, JSON.stringify(await toNodeConfig(args.text('config'), config), undefined, 2));
  await writeScripts(settings);
  return key;
}

function checkConfig({ model, slurm }: ServiceConfig): void {
  if (model.tokenizer === undefined)
    throw new UsageError('model.tokenizer is missing in the configuration: the folder of the model, on a disk that all nodes see');
  if (slurm.llm.nodes > 0 && slurm.llm.command === '')
    throw new UsageError('slurm.llm.command is missing: slurm.llm.nodes asks for LLM servers');
}

/** What the file says, with absolute paths: jobs start in another folder. */
async function toNodeConfig(path: string | undefined, config: ServiceConfig): Promise<Record<string, unknown>> {
  const raw: Record<string, unknown> = path === undefined ? {} : JSON.parse(await readFile(path, 'utf8'));
  const { tokenizer = '' } = config.model;
  return {
    ...raw,
    model: { ...toObject(raw.model), tokenizer: isAddress(tokenizer) ? tokenizer : resolve(tokenizer) },
    scenarios: config.scenarios.map((file) => resolve(file)),
    ...(config.prompts !== undefined && { prompts: resolve(config.prompts) }),
    slurm: { ...toObject(raw.slurm), name: config.slurm.name, folder: resolve(config.slurm.folder) },
  };
}

function toObject(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}

/** How the nodes start Millrace: by the paths of the program that runs now. */
function toNodeCommand({ slurm }: ServiceConfig): readonly string[] {
  if (slurm.command.length > 0) return slurm.command;
  return [process.execPath, '--disable-warning=ExperimentalWarning', resolve(process.argv[1] ?? '')];
}

export async function toScript({ config, deployment }: SlurmSettings, role: SlurmRole): Promise<string> {
  const node = config.slurm.head.node ?? (await deployment.readHome())?.node;
  return renderScript({ slurm: config.slurm, deployment, role, command: toNodeCommand(config), ...(node !== undefined && { node }) });
}

async function writeScripts(settings: SlurmSettings): Promise<void> {
  for (const role of ['head', 'worker', 'llm'] as const)
    await writeWhole(settings.deployment.scriptPath(role), await toScript(settings, role));
}

async function submitMissing({ config: { slurm }, deployment }: SlurmSettings, io: Io): Promise<void> {
  const jobs = await listActive(deployment);
  const running = jobs.find(({ role }) => role === 'head');
  if (running === undefined) await deployment.removeHead();
  const head = running?.id ?? (await submitJob({ script: deployment.scriptPath('head') }));
  if (running === undefined) io.stderr.write(`millrace: submitted ${deployment.jobName('head')} as job ${head}\n`);
  for (const role of ['worker', 'llm'] as const) {
    const have = jobs.filter((job) => job.role === role).length;
    const ids = await submitNodes(deployment, role, { count: slurm[role].nodes - have, after: head });
    if (ids.length > 0)
      io.stderr.write(`millrace: submitted ${slurm[role].nodes - have} of ${deployment.jobName(role)} as job ${ids.join(', ')}\n`);
  }
}

/** Jobs that were not asked to leave. */
export async function listActive(deployment: Deployment): Promise<SlurmJob[]> {
  const jobs = await listJobs(deployment);
  const released = await Promise.all(jobs.map(({ id }) => deployment.isReleased(id)));
  return jobs.filter(({ state }, index) => released[index] !== true && state !== 'COMPLETING');
}

export async function submitNodes(
  deployment: Deployment,
  role: 'worker' | 'llm',
  { count, after }: { readonly count: number; readonly after?: string | undefined },
): Promise<string[]> {
  const ids: string[] = [];
  for (let left = count; left > 0; left -= mostElements)
    ids.push(
      await submitJob({ script: deployment.scriptPath(role), count: Math.min(left, mostElements), ...(after !== undefined && { after }) }),
    );
  return ids;
}

interface HeadWait {
  readonly waitMs: number;
  readonly io: Io;
  /** The job of the head before, which may still answer. */
  readonly before?: string;
}

/** Absent, with the reason on standard error, if the head ended or took too long. */
export async function waitForHead(deployment: Deployment, { waitMs, io, before }: HeadWait): Promise<HeadRecord | undefined> {
  const stop = new AbortController();
  const release = io.onInterrupt(() => stop.abort());
  let shown = '';
  try {
    for (const startedAt = performance.now(); !stop.signal.aborted; ) {
      const head = await deployment.readHead();
      if (head !== undefined && head.jobId !== before && (await isAnswering(deployment))) return head;
      const job = (await listJobs(deployment)).find(({ role, id }) => role === 'head' && id !== before);
      if (job === undefined) return await reportEnded(deployment, io);
      const seen = `${job.id} is ${job.state}${job.reason === 'None' ? '' : ` (${job.reason})`}`;
      if (seen !== shown) io.stderr.write(`millrace: job ${seen}\n`);
      shown = seen;
      if (performance.now() - startedAt > waitMs) {
        io.stderr.write('millrace: the API does not answer yet; the jobs stay in the queue. Run this again, or: millrace slurm down\n');
        return undefined;
      }
      await sleep(pollMs, { signal: stop.signal }).catch(() => {}); // Ctrl-C ends the wait
    }
    io.stderr.write('millrace: the jobs stay in the queue. To end them: millrace slurm down\n');
    return undefined;
  } finally {
    release();
  }
}

async function isAnswering(deployment: Deployment): Promise<boolean> {
  await using client = await openHeadClient(deployment, 1);
  if (client === undefined) return false;
  return await client.status().then(
    () => true,
    () => false,
  );
}

async function reportEnded(deployment: Deployment, io: Io): Promise<undefined> {
  const lines = await readLastLines(deployment, 'head', 20);
  io.stderr.write(`millrace: the head ended before its API answered. Its log:\n${lines.map((line) => `  ${line}\n`).join('')}`);
}

interface UpReport {
  readonly key: string;
  /** Of the deployment. */
  readonly name: string;
  readonly nodes: number;
  /** The configuration, which the other commands need too. */
  readonly file: string | undefined;
}

export function renderUp(head: Pick<HeadRecord, 'url' | 'node'>, { key, name, nodes, file }: UpReport): string {
  const { host, port } = new URL(head.url);
  const status = `millrace slurm status${file === undefined ? '' : ` --config ${file}`}`;
  return [
    `${name} is up on ${head.node}; ${nodes} worker nodes were asked for.`,
    '',
    `  export MILLRACE_URL=${head.url}`,
    `  export MILLRACE_KEY=${key}`,
    '',
    `  ${status.padEnd(30)} # jobs, machines, queue`,
    `  ${'millrace submit tasks.jsonl'.padEnd(Math.max(30, status.length))} # run tasks`,
    `  ssh -L ${port}:${host} <login node>   # from your own machine; then MILLRACE_URL=http://127.0.0.1:${port}`,
    '',
    '',
  ].join('\n');
}
