// What the commands that run tasks in sandboxes read: the configuration of the sandboxes, and the user's own scenarios.

import { join, resolve } from 'node:path';
import { probeApptainer, probeBubblewrap } from '@millrace/sandbox';
import { readConfig, type ServiceConfig } from '@millrace/server';
import type { Arguments, Io, Option } from '../command/command.ts';
import { configOptions } from '../operate/config-options.ts';

export const scenarioOptions = {
  scenario: { type: 'string', value: 'NAME', describe: 'The scenario of lines that name none; swe by default.' },
  scenarios: configOptions.scenarios,
  config: {
    type: 'string',
    value: 'FILE',
    describe: 'Configuration file in JSON, for the sandbox driver, its limits and your own scenarios.',
  },
} as const satisfies Record<string, Option>;

/** `folder` is for the data of this command. */
export function readTaskConfig(args: Arguments, folder: string): ServiceConfig {
  const own = args.text('scenarios');
  return readConfig(args.text('config'), {
    data: join(folder, 'data'),
    run: join(folder, 'run'),
    ...(own === undefined ? {} : { scenarios: own.split(',').map((path) => resolve(path)) }),
  });
}

export async function canRun({ sandbox }: ServiceConfig, io: Io): Promise<boolean> {
  const probe = sandbox.driver === 'bubblewrap' ? await probeBubblewrap() : await probeApptainer();
  if (!probe.ok) io.stderr.write(`millrace: tasks run in sandboxes, and ${probe.reason}\n  → ${probe.remedy}\n`);
  return probe.ok;
}
