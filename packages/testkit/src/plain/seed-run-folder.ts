// A run folder for the tests of one `npm test`: what every sandbox needs, the executor's snapshot and a copy of Node, is made once in it, and
// the run folders of tests start with links to these files. Without it each of them makes its own, as on a machine.

import { link, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Set by the test command, and by nothing else. */
export const seedVariable = 'MILLRACE_TEST_RUN_FOLDER';

const shared = /^(executor|program)-[0-9a-f]{16}$/;

/** Creates the run folder. Names come from the content, so files that do not fit are ignored. */
export async function seedRunFolder(runDir: string): Promise<void> {
  const seed = process.env[seedVariable];
  if (seed === undefined) return;
  await mkdir(runDir, { recursive: true, mode: 0o700 });
  for (const entry of await readdir(seed, { withFileTypes: true })) {
    const [from, to] = [join(seed, entry.name), join(runDir, entry.name)];
    if (shared.test(entry.name)) await (entry.isDirectory() ? linkFolder(from, to) : link(from, to));
  }
}

async function linkFolder(from: string, to: string): Promise<void> {
  await mkdir(to);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [inner, linked] = [join(from, entry.name), join(to, entry.name)];
    await (entry.isDirectory() ? linkFolder(inner, linked) : link(inner, linked));
  }
}
