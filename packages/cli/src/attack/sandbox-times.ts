// Measures for how long a verifier waits for its sandboxes: while one opens, or works for it. The rest is the verifier's own time.

import type { Sandbox, SandboxDriver } from '@millrace/sandbox';

export class SandboxTimes {
  #busy = 0;
  #sinceMs = 0;
  #busyMs = 0;

  get busyMs(): number {
    return this.#busyMs + (this.#busy > 0 ? performance.now() - this.#sinceMs : 0);
  }

  watch(driver: SandboxDriver): SandboxDriver {
    const { freeze } = driver;
    return {
      name: driver.name,
      open: async (...call) => this.#watchSandbox(await this.#during(driver.open(...call))),
      ...(freeze && { freeze: freeze.bind(driver) }),
      sweep: () => driver.sweep(),
    };
  }

  #watchSandbox(sandbox: Sandbox): Sandbox {
    return {
      ...sandbox,
      [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
      runShell: (...call) => this.#during(sandbox.runShell(...call)),
      runPython: (...call) => this.#during(sandbox.runPython(...call)),
      exec: (...call) => this.#during(sandbox.exec(...call)),
      openProgram: (...call) => this.#during(sandbox.openProgram(...call)),
      readFile: (...call) => this.#during(sandbox.readFile(...call)),
      writeFile: (...call) => this.#during(sandbox.writeFile(...call)),
      readFolder: (...call) => this.#during(sandbox.readFolder(...call)),
      upload: (...call) => this.#during(sandbox.upload(...call)),
      download: (...call) => this.#during(sandbox.download(...call)),
    };
  }

  async #during<T>(work: Promise<T>): Promise<T> {
    if (this.#busy++ === 0) this.#sinceMs = performance.now();
    try {
      return await work;
    } finally {
      if (--this.#busy === 0) this.#busyMs += performance.now() - this.#sinceMs;
    }
  }
}
