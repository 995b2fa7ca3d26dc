// Prepares the repository of a task in a sandbox: the setup script of the task, then the base commit without its future.

import { RolloutError } from '@millrace/protocol';
import type { ExecResult, Sandbox } from '@millrace/sandbox';
import { cleanEnv, describeEnd } from '../../verifier/verifier.ts';
import type { SweTask } from '../task/swe-task.ts';
import { prepareScript } from './prepare-script.ts';

interface PrepareOptions {
  /** The agent's: without hidden files and without the future. The one for tests: without the future. The one for the diff needs neither. */
  readonly purpose: 'agent' | 'tests' | 'diff';
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** For git: whatever the agent could configure is overridden. */
export const gitEnv: Readonly<Record<string, string>> = { ...cleanEnv, GIT_TERMINAL_PROMPT: '0', GIT_OPTIONAL_LOCKS: '0', LC_ALL: 'C' };

/** Throws `init-failed` if the task does not fit its image. */
export async function prepareRepository(sandbox: Sandbox, task: SweTask, { purpose, timeoutMs, signal }: PrepareOptions): Promise<void> {
  const optional = signal ? { signal } : {};
  if (task.setup !== '') {
    const result = await sandbox.exec(['/bin/bash', '-c', task.setup], { cwd: '/', timeoutMs, ...optional });
    if (result.exitCode !== 0) throw new RolloutError('init-failed', `the setup of ${task.instance_id} ${describeEnd(result)}`);
  }
  const env = {
    ...gitEnv,
    workdir: task.workdir,
    base: task.base_commit,
    hidden: purpose === 'tests' ? '' : task.hidden.join('\n'),
    hide: purpose === 'diff' ? '0' : '1',
    patch: task.setup_patch === '' ? '0' : '1',
  };
  const result = await sandbox.exec(['/bin/bash', '-c', prepareScript], { env, stdin: task.setup_patch, cwd: '/', timeoutMs, ...optional });
  if (result.exitCode !== 0) throw new RolloutError('init-failed', `${task.instance_id} could not be prepared: ${explain(result)}`);
}

function explain(result: ExecResult): string {
  return result.exitCode === 3 ? result.stderr.toString('utf8').trim() : `git ${describeEnd(result)}`;
}
