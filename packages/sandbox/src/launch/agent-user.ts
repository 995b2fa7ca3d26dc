// The user that agents of a root worker are on this machine: one that owns nothing, so that an agent that gets out of its sandbox has no
// rights. That user cannot enter the folders of root, so the run folder is also mounted at a path that every user can enter.

import { chmod } from 'node:fs/promises';
import { runProgram } from '@millrace/base/run-program';
import type { DeviceGuard } from './device-guard.ts';

/** From the range that systemd's list of user ids marks as unused. All sandboxes have the same one, because they share layers. */
export const agentUid = 0x70000000;

export interface AgentUser {
  readonly uid: number;
  /** Where that user sees the run folder. */
  readonly runDir: string;
}

/** Wraps a command so that it runs as the user, without groups and capabilities. */
export function renderBecome(uid: number, command: readonly string[]): string[] {
  return ['setpriv', '--reuid', String(uid), '--regid', String(uid), '--clear-groups', '--', ...command];
}

const trialTimeoutMs = 20_000;

/** Undefined if `trial`, a command that starts a sandbox, fails as that user. The guard must have been opened with the run folder. */
export async function findAgentUser(
  guard: DeviceGuard,
  runDir: string,
  trial: (user: AgentUser) => readonly string[],
): Promise<AgentUser | undefined> {
  if (guard.runDirView === undefined) return undefined;
  await chmod(runDir, 0o711);
  const user = { uid: agentUid, runDir: guard.runDirView };
  return runProgram(guard.wrap(renderBecome(user.uid, trial(user))), { timeoutMs: trialTimeoutMs }).then(
    () => user,
    () => undefined, // this machine lets only root create user namespaces
  );
}
