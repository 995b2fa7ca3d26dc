// `millrace new scenario NAME`: a folder with a scenario that runs, one task, a scripted policy and a README. `millrace new prompts FOLDER`:
// the texts that the built-in scenarios and tools give to a model, to be edited. Neither overwrites anything.

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { renderPromptFiles } from '@millrace/scenarios';
import { type Arguments, type Command, type CommandGroup, type Io, UsageError } from '../../command/command.ts';
import { makeScenarioFiles, scenarioFile } from './scenario-files.ts';

const scenario: Command = {
  name: 'new scenario',
  summary: 'Makes the files of a new scenario: the module, a task, a scripted policy and a README.',
  positional: '<name>',
  options: {
    folder: { type: 'string', value: 'FOLDER', describe: 'The folder to make; ./NAME by default.' },
    python: { type: 'boolean', describe: 'Write the scenario in Python instead of TypeScript.' },
  },
  examples: ['millrace new scenario word-count', 'millrace new scenario word-count --python', 'millrace try word-count/scenario.py'],
  run: runNewScenario,
};

const prompts: Command = {
  name: 'new prompts',
  summary: 'Writes the prompts of the built-in scenarios and the descriptions of the built-in tools into a folder, for you to edit.',
  positional: '<folder>',
  options: {},
  examples: ['millrace new prompts my-prompts'],
  run: runNewPrompts,
};

export const newCommands: CommandGroup = {
  name: 'new',
  summary: 'Makes the files of a new scenario, or of your own prompts.',
  actions: { scenario, prompts },
  usual: 'scenario',
};

async function runNewScenario(args: Arguments, io: Io): Promise<number> {
  const [name = ''] = args.positionals;
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(name))
    throw new UsageError(`${name} cannot be the name of a scenario: use lower-case words joined by hyphens, such as word-count`);
  const folder = args.text('folder') ?? name;
  await makeFolder(folder);
  const language = args.flag('python') ? 'python' : 'typescript';
  const file = scenarioFile[language];
  const files = makeScenarioFiles(name, language);
  for (const [path, text] of Object.entries(files)) await writeFile(join(folder, path), text, { flag: 'wx' });
  const lines = [
    ...Object.keys(files).map((path) => `  ${join(folder, path)}`),
    '',
    'Next:',
    `  millrace try ${join(folder, file)}`,
    `  millrace serve --tokenizer FOLDER --scenarios ${join(folder, file)}`,
    `  millrace submit ${join(folder, 'tasks.jsonl')}`,
  ];
  io.stdout.write(`Made the scenario ${name}:\n${lines.join('\n')}\n`);
  return 0;
}

async function runNewPrompts(args: Arguments, io: Io): Promise<number> {
  const [folder = ''] = args.positionals;
  if (folder === '') throw new UsageError('name the folder to make, such as my-prompts');
  await makeFolder(folder);
  const files = renderPromptFiles();
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text, { flag: 'wx' });
  }
  const lines = Object.keys(files).map((file) => `  ${join(folder, file)}`);
  io.stdout.write(
    `Made these files; delete those that you do not change:\n${lines.join('\n')}\n\nThen set "prompts": "${folder}" in the configuration.\n`,
  );
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
