// The bubblewrap driver: a sandbox from the machine's own programs, for tasks that need no image.

import { join } from 'node:path';
import { RolloutError } from '@millrace/protocol';
import { type Log, silentLog } from '../base/log.ts';
import { readHostArguments, renderArguments } from './bubblewrap-arguments.ts';
import { writeExecutorFiles } from './executor-files.ts';
import { baseEnv, defaultPath } from './layout.ts';
import { openRunDir, openSandbox } from './open-sandbox.ts';
import { sweepOrphans } from './orphans.ts';
import type { SandboxDriver } from './sandbox.ts';

export interface BubblewrapOptions {
  /** On a disk of this machine, with a short path: sockets are in it. */
  readonly runDir: string;
  readonly log?: Log;
  readonly bwrapPath?: string;
  readonly nodePath?: string;
}

export async function openBubblewrapDriver(options: BubblewrapOptions): Promise<SandboxDriver> {
  const { log = silentLog, bwrapPath = 'bwrap', nodePath = process.execPath } = options;
  const runDir = await openRunDir(options.runDir);
  const executorFiles = await writeExecutorFiles(runDir);
  const host = { nodePath, executorFiles, etcFiles: join(executorFiles, 'etc'), system: readHostArguments() };
  const launcher = {
    name: 'bubblewrap',
    runDir,
    log,
    prepare: async (spec: { readonly env?: Readonly<Record<string, string>> }, folder: string) => ({
      holder: { file: bwrapPath, args: renderArguments(host, folder), tellsInside: true },
      env: { PATH: defaultPath, ...baseEnv, ...spec.env },
    }),
  };
  return {
    name: 'bubblewrap',
    async open(spec, { signal } = {}) {
      if (spec.image !== undefined) {
        const message = `the task asks for the image ${spec.image}, and bubblewrap runs none: set sandbox.driver to apptainer`;
        throw new RolloutError('sandbox-refused', message);
      }
      return openSandbox(launcher, spec, signal);
    },
    sweep: () => sweepOrphans(runDir),
  };
}
