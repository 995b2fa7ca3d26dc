// What the parts of the sandbox suite share: the sandbox under test, and a short way to run a command in its shell.

import type { Sandbox, SandboxDriver, ShellResult } from '@millrace/sandbox';

export const timeoutMs = 10_000;

export interface SuiteContext {
  sandbox(): Sandbox;
  driver(): SandboxDriver;
  readonly uid: number;
  readonly isRootWritable: boolean;
  /** The user of the agent's processes on this machine; the worker's own if undefined. */
  readonly hostUid: number | undefined;
  /** The driver starts sandboxes ahead, at moments of its own choice. */
  readonly isPooled: boolean;
  run(
    command: string,
    options?: { readonly timeoutMs?: number; readonly capBytes?: number; readonly signal?: AbortSignal },
  ): Promise<ShellResult>;
}
