// Task folders of the harbor scenario, all with the same environment, so that they share one image.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The base of their image; the configuration of the service puts another one in its place. */
export const harborBase = 'debian:12-slim';

/** The task is to write a program that adds `add` to its argument. */
export function writeHarborTask(folder: string, name: string, add: number): void {
  const files = {
    'task.toml': '[environment]\nmemory_mb = 512\n[verifier]\ntimeout_sec = 20.0\n',
    'instruction.md': `${name} Write /app/add.sh, which adds ${add} to its argument.`,
    'environment/Dockerfile': `FROM ${harborBase}\nWORKDIR /app\n`,
    'solution/solve.sh': `echo 'echo $(($1 + ${add}))' > /app/add.sh\n`,
    'tests/test.sh': `[ "$(bash /app/add.sh 5)" = '${add + 5}' ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n`,
  };
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
}
