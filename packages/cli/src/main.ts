#!/usr/bin/env node
// The millrace command: a table of commands, each loaded when it is called. Exit codes: 0 success, 1 something failed,
// 2 the command line or its input is wrong.

import { didYouMean, type ErrorCode, messageOf, RolloutError } from '@millrace/protocol/plain';
import { type Command, type CommandGroup, type Io, isGroup, UsageError } from './command/command.ts';
import type { CompletionWords } from './command/completion.ts';
import { renderGroupHelp, renderHelp, renderRows } from './command/help.ts';
import { parseArguments } from './command/parse-arguments.ts';

interface CommandEntry {
  readonly summary: string;
  load(): Promise<Command | CommandGroup>;
}

/** How many of `commands` a user needs first; they lead the list. */
const usualCommands = 10;

export const commands: Readonly<Record<string, CommandEntry>> = {
  doctor: {
    summary: 'Checks everything that `millrace serve` needs, and shows how to get what is missing.',
    load: async () => (await import('./operate/doctor.ts')).doctorCommand,
  },
  demo: {
    summary: 'Runs 60 rollouts in sandboxes on this machine with a scripted backend (no model, no GPU), and checks every token.',
    load: async () => (await import('./author/demo/demo.ts')).demoCommand,
  },
  serve: {
    summary: 'Runs the service with its workers on this machine.',
    load: async () => (await import('./operate/serve.ts')).serveCommand,
  },
  backend: {
    summary: 'Adds, lists, drains and removes the LLM servers that sample.',
    load: async () => (await import('./service/backend.ts')).backendCommands,
  },
  submit: {
    summary: 'Submits tasks from JSON lines and writes each rollout as one JSON line when it ends.',
    load: async () => (await import('./rollouts/submit.ts')).submitCommand,
  },
  watch: {
    summary: 'Shows stages, throughput, rewards, batches, backends and workers, live.',
    load: async () => (await import('./watch/watch.ts')).watchCommand,
  },
  show: {
    summary: 'Shows one rollout with its reward, failure, timings and trajectory, turn by turn.',
    load: async () => (await import('./rollouts/show.ts')).showCommand,
  },
  view: {
    summary: 'Shows the results in a file, a folder or a store in the browser, without a service.',
    load: async () => (await import('./look/view.ts')).viewCommand,
  },
  eval: {
    summary: 'Measures the policy on a fixed set of tasks: mean reward, pass@k, and what failed.',
    load: async () => (await import('./evaluate/eval.ts')).evalCommands,
  },
  batch: {
    summary: 'Starts, lists, follows, resumes and cancels batches of groups.',
    load: async () => (await import('./service/batch.ts')).batchCommands,
  },
  worker: {
    summary: 'Adds a worker to a service that is already running.',
    load: async () => (await import('./operate/worker.ts')).workerCommand,
  },
  'tool-server': {
    summary: 'Runs single actions in sandboxes, for agents that run elsewhere.',
    load: async () => (await import('./operate/tool-server.ts')).toolServerCommand,
  },
  slurm: {
    summary: 'Starts, scales, shows and ends a deployment on a Slurm cluster.',
    load: async () => (await import('./slurm/slurm.ts')).slurmCommands,
  },
  policy: {
    summary: 'Shows, pauses and resumes sampling, for a change of weights.',
    load: async () => (await import('./service/policy.ts')).policyCommands,
  },
  logs: {
    summary: 'Prints the events of the service, or of one rollout.',
    load: async () => (await import('./service/logs.ts')).serviceLogsCommand,
  },
  ls: {
    summary: 'Lists rollouts with their state, reward and failure, the newest first.',
    load: async () => (await import('./rollouts/list.ts')).listCommand,
  },
  export: {
    summary: 'Writes rollouts with their trajectories as one HTML page to send to a colleague, or as JSON or ATIF.',
    load: async () => (await import('./look/export.ts')).exportCommand,
  },
  scan: {
    summary: 'Searches conversations for refusals, loops, broken environments and your own patterns.',
    load: async () => (await import('./look/scan.ts')).scanCommand,
  },
  cancel: {
    summary: 'Cancels rollouts, a batch, or everything that is queued.',
    load: async () => (await import('./rollouts/cancel.ts')).cancelCommand,
  },
  retry: {
    summary: 'Submits the tasks of rollouts that ended without a reward again.',
    load: async () => (await import('./rollouts/retry.ts')).retryCommand,
  },
  open: {
    summary: 'Opens a shell in a new sandbox with the files and the shell of a rollout after a turn.',
    load: async () => (await import('./rollouts/open.ts')).openCommand,
  },
  replay: {
    summary: 'Continues a rollout after a turn that was kept, with the policy of now, and shows how that ends.',
    load: async () => (await import('./rollouts/replay.ts')).replayCommand,
  },
  task: {
    summary: 'Checks and attacks tasks, imports them from data sets, and shows them.',
    load: async () => (await import('./task/task.ts')).taskCommands,
  },
  image: {
    summary: 'Makes, lists and removes the images that Apptainer sandboxes run.',
    load: async () => (await import('./operate/image.ts')).imageCommand,
  },
  store: {
    summary: 'Shows what the store holds, gives space back to the disk, and makes and restores backups.',
    load: async () => (await import('./operate/store.ts')).storeCommands,
  },
  new: {
    summary: 'Makes the files of a new scenario, or of your own prompts.',
    load: async () => (await import('./author/new/new.ts')).newCommands,
  },
  try: {
    summary: 'Runs one task of a scenario in a real sandbox with a scripted policy: no service, no backend, no model.',
    load: async () => (await import('./author/try/try.ts')).tryCommand,
  },
  model: {
    summary: "Checks a model's tokenizer, chat template and tool-call format.",
    load: async () => (await import('./operate/model.ts')).modelCommands,
  },
  completion: {
    summary: 'Prints a script that completes commands and options in bash, zsh or fish.',
    load: async () => (await import('./command/completion.ts')).makeCompletionCommand(readCompletionWords),
  },
  version: {
    summary: 'Prints the version of this command.',
    load: async () => (await import('./command/version.ts')).versionCommand,
  },
};

/** The shortest way from nothing to results; the top-level help and docs/cli.md show it. */
export const firstSteps: readonly (readonly [string, string])[] = [
  ['millrace doctor', 'check this machine'],
  ['millrace serve --tokenizer models/qwen3', 'start the service; the folder has tokenizer.json'],
  ['millrace backend add http://127.0.0.1:8000', 'in another terminal: add a vLLM server'],
  ['millrace submit tasks.jsonl > results.jsonl', 'run the tasks; one JSON line for each rollout'],
  ['millrace watch', 'follow what happens'],
];

async function readCompletionWords(): Promise<CompletionWords> {
  const { toCompletionWords } = await import('./command/completion.ts');
  const loaded = await Promise.all(Object.entries(commands).map(async ([name, { load }]) => [name, await load()] as const));
  return toCompletionWords(Object.fromEntries(loaded));
}

/** Runs one command line and returns its exit code. Throws nothing. */
export async function runMillrace(argv: readonly string[], io: Io): Promise<number> {
  const [name, ...rest] = argv;
  try {
    if (name === undefined) return print(io.stderr, renderOverview(), 2);
    if (name === '--version' || name === '-v') return print(io.stdout, `${await (await import('@millrace/base/version')).readVersion()}\n`);
    if (name === '--help' || name === '-h' || name === 'help') return await help(rest, io);
    const loaded = await loadCommand(name);
    if (isGroup(loaded)) return await runGroup(loaded, rest, io);
    return await runCommand(loaded, rest, io);
  } catch (error) {
    return report(error, name, io);
  }
}

async function runCommand(command: Command, argv: readonly string[], io: Io): Promise<number> {
  if (isHelpAsked(argv)) return print(io.stdout, renderHelp(command));
  return command.run(parseArguments(command, argv), io);
}

async function runGroup(group: CommandGroup, argv: readonly string[], io: Io): Promise<number> {
  const [word] = argv;
  if (word === '--help' || word === '-h') return print(io.stdout, renderGroupHelp(group));
  const isNamed = word !== undefined && !word.startsWith('-') && (group.isOpen !== true || Object.hasOwn(group.actions, word));
  return runCommand(chooseAction(group, isNamed ? word : group.usual), isNamed ? argv.slice(1) : argv, io);
}

function report(error: unknown, name: string | undefined, io: Io): number {
  if (error instanceof UsageError) {
    const topic = name !== undefined && Object.hasOwn(commands, name) ? `millrace ${name} --help` : 'millrace --help';
    return print(io.stderr, `millrace: ${error.message}\nFor help: ${topic}\n`, 2);
  }
  const isInputWrong = error instanceof RolloutError && inputCodes.includes(error.code);
  return print(io.stderr, `millrace: ${messageOf(error)}\n`, isInputWrong ? 2 : 1);
}

/** The service found that the input is wrong. */
const inputCodes: readonly ErrorCode[] = ['bad-request', 'task-invalid', 'unknown-scenario'];

async function help([topic, action]: readonly string[], io: Io): Promise<number> {
  if (topic === undefined || topic.startsWith('-')) return print(io.stdout, renderOverview());
  const loaded = await loadCommand(topic);
  if (!isGroup(loaded)) return print(io.stdout, renderHelp(loaded));
  return print(io.stdout, action === undefined ? renderGroupHelp(loaded) : renderHelp(chooseAction(loaded, action)));
}

function renderOverview(): string {
  const rows = Object.entries(commands).map(([name, { summary }]): [string, string] => [name, summary]);
  const longest = Math.max(...firstSteps.map(([line]) => line.length));
  return [
    'Millrace, a rollout service for reinforcement learning of multi-turn LLM agents.',
    '',
    'Usage: millrace <command> [options]',
    '',
    'Commands:',
    ...renderRows(rows.slice(0, usualCommands)),
    '',
    'More commands:',
    ...renderRows(rows.slice(usualCommands)),
    '',
    'From nothing to results:',
    ...firstSteps.map(([line, what]) => `  ${line.padEnd(longest)}   # ${what}`),
    '',
    'For one command: millrace <command> --help',
    '',
  ].join('\n');
}

async function loadCommand(name: string): Promise<Command | CommandGroup> {
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry !== undefined) return entry.load();
  throw new UsageError(`there is no command ${name}${didYouMean(name, Object.keys(commands))}`);
}

function chooseAction({ name, actions }: CommandGroup, word: string): Command {
  const action = Object.hasOwn(actions, word) ? actions[word] : undefined;
  if (action !== undefined) return action;
  const names = Object.keys(actions);
  throw new UsageError(`${name} has no action ${word}${didYouMean(word, names)}; it has ${names.join(', ')}`);
}

function isHelpAsked(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return (end < 0 ? argv : argv.slice(0, end)).some((word) => word === '--help' || word === '-h');
}

function print(stream: NodeJS.WritableStream, text: string, code = 0): number {
  stream.write(text);
  return code;
}

/** A reader that stops early, such as `head`, is not an error. */
function exitOnBrokenPipe(stream: NodeJS.WriteStream): void {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit(process.exitCode ?? 0);
  });
}

function onInterrupt(listener: () => void): () => void {
  process.on('SIGINT', listener);
  return () => process.off('SIGINT', listener);
}

if (import.meta.main) {
  const { stdin, stdout, stderr, env } = process;
  exitOnBrokenPipe(stdout);
  exitOnBrokenPipe(stderr);
  process.exitCode = await runMillrace(process.argv.slice(2), { stdin, stdout, stderr, env, onInterrupt });
}
