// How the agent's programs are started: within the limits that no control group keeps, and as the first to go when the sandbox's
// memory is used up, so that the executor is not.

import { writeFileSync } from 'node:fs';

/** As the worker says in limits.json; what is absent is kept by control groups. */
export interface ProgramLimits {
  readonly processes?: number;
  readonly memoryMiB?: number;
}

/** The command as it is, or through a bash that limits itself and then becomes it. */
export function renderLaunch(command: readonly string[], { processes, memoryMiB }: ProgramLimits): string[] {
  const limits = [
    ...(processes === undefined ? [] : [`ulimit -u ${processes}`]),
    ...(memoryMiB === undefined ? [] : [`ulimit -v ${memoryMiB * 1024}`]),
  ];
  return limits.length === 0 ? [...command] : ['/bin/bash', '-c', `${limits.join('; ')}; exec "$@"`, 'bash', ...command];
}

/** Its children inherit it. The executor's own score is lower, and was set before it started. */
export function offerToKernel(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '1000');
  } catch {} // ended already, or a program that may not be read: then it is no worse than the executor
}

/** The sandbox has no process, open file, memory or disk left to give. */
export function isUsedUp(error: unknown): boolean {
  return /^(EAGAIN|EMFILE|ENFILE|ENOMEM|ENOSPC|EDQUOT)$/.test(String((error as NodeJS.ErrnoException).code));
}

/** All but this one, in one go: nothing can fork away from it. */
export function killEverything(): void {
  try {
    process.kill(-1, 'SIGKILL');
  } catch {} // there was nothing else
}
