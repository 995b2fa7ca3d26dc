// `millrace new scenario NAME`: a folder with a scenario that runs, one task, a scripted policy and a README. Overwrites nothing.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Arguments, type Command, type CommandGroup, type Io, UsageError } from '../../command/command.ts';
import { makeScenarioFiles } from './scenario-files.ts';

const scenario: Command = {
  name: 'new scenario',
  summary: 'Makes the files of a new scenario: the module, a task, a scripted policy and a README.',
  positional: '<name>',
  options: {
    folder: { type: 'string', value: 'FOLDER', describe: 'The folder to make; ./NAME by default.' },
  },
  examples: ['millrace new scenario word-count', 'millrace try word-count/scenario.ts'],
  run: runNewScenario,
};

export const newCommands: CommandGroup = {
  name: 'new',
  summary: 'Makes the files of a new scenario.',
  actions: { scenario },
  usual: 'scenario',
};

async function runNewScenario(args: Arguments, io: Io): Promise<number> {
  const [name = ''] = args.positionals;
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name))
    throw new UsageError(`${name} cannot be the name of a scenario: use lower-case words joined by hyphens, such as word-count`);
  const folder = args.text('folder') ?? name;
  await makeFolder(folder);
  const files = makeScenarioFiles(name);
  for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text, { flag: 'wx' });
  const lines = [
    ...Object.keys(files).map((file) => `  ${join(folder, file)}`),
    '',
    'Next:',
    `  millrace try ${join(folder, 'scenario.ts')}`,
    `  millrace serve --tokenizer FOLDER --scenarios ${join(folder, 'scenario.ts')}`,
    `  millrace submit ${join(folder, 'tasks.jsonl')}`,
  ];
  io.stdout.write(`Made the scenario ${name}:\n${lines.join('\n')}\n`);
  return 0;
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST') throw new UsageError(`${folder} already exists, and nothing is overwritten; choose another name or --folder`);
    throw error;
  }
}
