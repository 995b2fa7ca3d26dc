// Counts the programs that run in the sandboxes of a verifier: if its time is up while one runs, the agent's files may be the reason.

import type { Sandbox } from '../sandbox/sandbox.ts';

export class RunningPrograms {
  count = 0;

  /** The same sandbox, with its programs counted while they run. */
  watch(sandbox: Sandbox): Sandbox {
    const during = async <T>(work: Promise<T>): Promise<T> => {
      this.count += 1;
      try {
        return await work;
      } finally {
        this.count -= 1;
      }
    };
    return {
      ...sandbox,
      exec: (...call) => during(sandbox.exec(...call)),
      runShell: (...call) => during(sandbox.runShell(...call)),
      runPython: (...call) => during(sandbox.runPython(...call)),
    };
  }
}
