#!/usr/bin/env node
// The millrace command: a table of commands, loaded when they are called. Exit codes: 0 all went well, 1 something failed,
// 2 the command line or its input was wrong.

import { messageOf, RolloutError } from '@millrace/protocol';
import { type Command, type Io, parseArguments, renderHelp, renderTable, UsageError } from './command/command.ts';
import { chooseNearest } from './command/nearest.ts';

interface Entry {
  readonly summary: string;
  load(): Promise<Command>;
}

const commands: Readonly<Record<string, Entry>> = {
  serve: {
    summary: 'Runs the service with its workers on this machine.',
    load: async () => (await import('./operate/serve.ts')).serveCommand,
  },
  worker: {
    summary: 'Adds a worker to a service that runs already.',
    load: async () => (await import('./operate/worker.ts')).workerCommand,
  },
  submit: {
    summary: 'Submits tasks from JSON lines and writes each rollout as it ends.',
    load: async () => (await import('./rollouts/submit.ts')).submitCommand,
  },
  watch: {
    summary: 'Shows stages, rates, backends and workers, live.',
    load: async () => (await import('./watch/watch.ts')).watchCommand,
  },
  show: {
    summary: 'Shows one trajectory, turn by turn.',
    load: async () => (await import('./rollouts/show.ts')).showCommand,
  },
  image: {
    summary: 'Makes, lists and removes the images that Apptainer sandboxes run.',
    load: async () => (await import('./operate/image.ts')).imageCommand,
  },
  demo: {
    summary: 'Runs a short demo on this machine: no model, no GPU, real sandboxes, every token checked.',
    load: async () => (await import('./author/demo/demo.ts')).demoCommand,
  },
  new: {
    summary: 'Makes the files of a new scenario.',
    load: async () => (await import('./author/new/new.ts')).newCommand,
  },
  try: {
    summary: 'Runs one task of a scenario with a scripted policy: no service, no backend, no model.',
    load: async () => (await import('./author/try/try.ts')).tryCommand,
  },
  doctor: {
    summary: 'Checks everything that serve needs, and shows how to get what is missing.',
    load: async () => (await import('./operate/doctor.ts')).doctorCommand,
  },
};

/** Runs one command line and answers its exit code. Throws nothing. */
export async function runMillrace(argv: readonly string[], io: Io): Promise<number> {
  const [name, ...rest] = argv;
  try {
    if (name === undefined || name === '--help' || name === '-h' || name === 'help') return await help(rest, io, name === undefined);
    const command = await loadCommand(name);
    if (isHelpAsked(rest)) return say(io, renderHelp(command));
    return await command.run(parseArguments(command, rest), io);
  } catch (error) {
    if (error instanceof UsageError) {
      const where = name !== undefined && Object.hasOwn(commands, name) ? `millrace ${name} --help` : 'millrace --help';
      io.stderr.write(`millrace: ${error.message}\n${where} says how.\n`);
      return 2;
    }
    const hint =
      error instanceof RolloutError && error.details?.away === true
        ? '\nIs it running? millrace serve starts it, and --url says where it is.'
        : '';
    io.stderr.write(`millrace: ${messageOf(error)}${hint}\n`);
    return 1;
  }
}

async function help(rest: readonly string[], io: Io, bare: boolean): Promise<number> {
  const [topic] = rest;
  if (topic !== undefined && !topic.startsWith('-')) return say(io, renderHelp(await loadCommand(topic)));
  const rows = Object.entries(commands).map(([name, { summary }]): [string, string] => [name, summary]);
  const text = [
    'Millrace, a rollout service for reinforcement learning of multi-turn LLM agents.',
    '',
    'Usage: millrace <command> [options]',
    '',
    'Commands:',
    ...renderTable(rows),
    '',
    'Examples:',
    '  millrace serve',
    '  millrace submit tasks.jsonl > results.jsonl',
    '  millrace watch',
    '',
    'millrace <command> --help says more about one of them.',
    '',
  ].join('\n');
  if (!bare) return say(io, text);
  io.stderr.write(text);
  return 2;
}

async function loadCommand(name: string): Promise<Command> {
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry !== undefined) return entry.load();
  const nearest = chooseNearest(name, Object.keys(commands));
  throw new UsageError(`there is no command ${name}${nearest === undefined ? '' : `; did you mean ${nearest}?`}`);
}

function isHelpAsked(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return (end < 0 ? argv : argv.slice(0, end)).some((word) => word === '--help' || word === '-h');
}

function say(io: Io, text: string): number {
  io.stdout.write(text);
  return 0;
}

/** A reader that left, as `head` does, is no error; nothing more can be said to it. */
function leaveOnBrokenPipe(stream: NodeJS.WriteStream): void {
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
  leaveOnBrokenPipe(stdout);
  leaveOnBrokenPipe(stderr);
  process.exitCode = await runMillrace(process.argv.slice(2), { stdin, stdout, stderr, env, onInterrupt });
}
