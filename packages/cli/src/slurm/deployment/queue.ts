// Slurm's own commands: submit, list, signal and cancel jobs. Jobs are those of this user with the names of one deployment.

import { userInfo } from 'node:os';
import { ProgramFailed, runProgram } from '@millrace/base/run-program';
import { messageOf } from '@millrace/protocol';
import { type SlurmRole, slurmRoles } from '@millrace/server';
import type { Deployment } from './deployment.ts';

export interface SlurmJob {
  /** `123`, or `123_4` for an element of an array. */
  readonly id: string;
  readonly role: SlurmRole;
  /** As Slurm calls it: PENDING, RUNNING, COMPLETING. */
  readonly state: string;
  /** Empty while it waits. */
  readonly node: string;
  /** Why it waits. */
  readonly reason: string;
  /** How long it runs, and how long it may. */
  readonly elapsed: string;
  readonly limit: string;
}

const timeoutMs = 60_000;

/** Slurm's commands fail while its controller restarts; a message says what to check. */
async function runSlurm(command: readonly string[]): Promise<string> {
  try {
    return await runProgram(command, { timeoutMs });
  } catch (error) {
    const isMissing = error instanceof ProgramFailed && /ENOENT/.test(error.message);
    const remedy = isMissing ? '; run this on a login node of the cluster, where Slurm is installed' : '';
    throw new Error(`${command.slice(0, 1).join('')} failed: ${messageOf(error)}${remedy}`, { cause: error });
  }
}

/** Waiting and running jobs, oldest first. */
export async function listJobs(deployment: Deployment): Promise<SlurmJob[]> {
  const names = slurmRoles.map((role) => deployment.jobName(role));
  const format = '%i|%j|%T|%N|%r|%M|%l';
  const text = await runSlurm(['squeue', '-h', '-r', '-u', userInfo().username, `--name=${names.join(',')}`, '-o', format]);
  return text
    .split('\n')
    .filter(Boolean)
    .flatMap((line) => parseJob(line, deployment))
    .sort((a, b) => toNumber(a.id) - toNumber(b.id));
}

function parseJob(line: string, deployment: Deployment): SlurmJob[] {
  const [id = '', name, state = '', node = '', reason = '', elapsed = '', limit = ''] = line.split('|');
  const role = slurmRoles.find((one) => deployment.jobName(one) === name);
  return role === undefined ? [] : [{ id, role, state, node, reason, elapsed, limit }];
}

function toNumber(id: string): number {
  const [job = '0', element = '0'] = id.split('_');
  return Number(job) * 1e6 + Number(element);
}

interface SubmitRequest {
  readonly script: string;
  /** Elements of a job array; a single job if absent. */
  readonly count?: number;
  /** The job must not start before this one. */
  readonly after?: string;
  /** The job must run on this node. */
  readonly node?: string;
}

/** Returns the id of the job. */
export async function submitJob({ script, count, after, node }: SubmitRequest): Promise<string> {
  const flags = [
    ...(count === undefined ? [] : [`--array=0-${count - 1}`]),
    ...(after === undefined ? [] : [`--dependency=after:${after}`]),
    ...(node === undefined ? [] : [`--nodelist=${node}`]),
  ];
  const text = await runSlurm(['sbatch', '--parsable', ...flags, script]);
  return text.trim().split(';')[0] ?? '';
}

/** Asks jobs to end: they finish or hand back what they hold. Jobs that have not started are taken out of the queue. */
export async function releaseJobs(jobs: readonly SlurmJob[]): Promise<void> {
  const [waiting, running] = [jobs.filter(isWaiting), jobs.filter((job) => !isWaiting(job))];
  if (waiting.length > 0) await cancelJobs(waiting);
  for (const { id } of running) await runSlurm(['scancel', '--batch', '--signal=TERM', id]).catch(ignoreEnded);
}

export async function cancelJobs(jobs: readonly SlurmJob[]): Promise<void> {
  if (jobs.length > 0) await runSlurm(['scancel', ...jobs.map(({ id }) => id)]).catch(ignoreEnded);
}

export function isWaiting({ state }: SlurmJob): boolean {
  return state === 'PENDING' || state === 'REQUEUED' || state === 'CONFIGURING';
}

function ignoreEnded(error: Error): void {
  if (!/Invalid job id|already complet/i.test(error.message)) throw error; // it ended meanwhile: that is what we wanted
}
