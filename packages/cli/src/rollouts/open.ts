// `millrace open`: a shell in a new sandbox whose files and shell are those of a rollout after one of its turns. What is done in it changes
// nothing of the rollout.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { silentLog } from '@millrace/base/log';
import { type Client, openClient } from '@millrace/client';
import { definedOf, RolloutError, type SavedTurn } from '@millrace/protocol';
import { type Checkpoint, CheckpointShelf, restoreCheckpoint, type Sandbox } from '@millrace/sandbox';
import { openDriver, type ServiceConfig } from '@millrace/server';
import { type Arguments, type Command, serviceOptions, toServiceAddress } from '../command/command.ts';
import { findRollout } from '../command/find-id.ts';
import { configOptions, toConfig } from '../operate/config-options.ts';
import type { Io } from '../terminal/io.ts';

export const openCommand: Command = {
  name: 'open',
  summary:
    'Opens a shell in a new sandbox with the files and the shell of a rollout after a turn. Run it on the machine that ran the rollout, with the configuration of the service.',
  positional: '<id>',
  options: {
    turn: {
      type: 'string',
      value: 'N',
      describe: 'After this turn, or the last one before it that has a checkpoint; the newest by default.',
    },
    config: configOptions.config,
    data: configOptions.data,
    ...serviceOptions,
  },
  examples: ['millrace open r-1234', 'millrace open r-1234 --turn 7', "echo 'git diff' | millrace open r-1234"],
  run: runOpen,
};

const commandMs = 86_400_000;

async function runOpen(args: Arguments, io: Io): Promise<number> {
  await using client = openClient(toServiceAddress(args, io));
  const config = toConfig(args, io);
  const { id } = await findRollout(client, args.positionals[0] ?? '');
  const found = await findCheckpoint(client, { id, turn: args.count('turn', 1), config });
  const runDir = await mkdtemp(join(tmpdir(), 'mr-'));
  try {
    const driver = await openDriver({ ...config, run: runDir }, silentLog);
    await using sandbox = await driver.open({});
    const { signal } = new AbortController();
    await restoreCheckpoint(sandbox, found.checkpoint, { folders: driver.writable ?? [], signal });
    io.stderr.write(`${id} after turn ${found.turn}, in a sandbox of its own; Ctrl-D ends it.\n`);
    await runLines(sandbox, found.checkpoint.cwd, io);
    return 0;
  } finally {
    await rm(runDir, { recursive: true, force: true });
  }
}

interface WantedTurn {
  readonly id: string;
  readonly turn: number | undefined;
  readonly config: ServiceConfig;
}

/** Of a rollout that runs, only the newest checkpoint is there, unless it keeps more. */
async function findCheckpoint(
  client: Client,
  { id, turn, config }: WantedTurn,
): Promise<{ readonly turn: number; readonly checkpoint: Checkpoint }> {
  const { checkpointsGib, checkpointsFolder: shared } = config.pipeline;
  const shelf = new CheckpointShelf({ runDir: config.run, maxBytes: checkpointsGib * 2 ** 30, ...definedOf({ shared }) });
  const turns = (await client.turns(id)).filter((one) => turn === undefined || one.turn <= turn);
  for (const one of turns.toReversed()) {
    const checkpoint = await load(shelf, one);
    if (checkpoint) return { turn: one.turn, checkpoint };
  }
  const why = `submit it with keep_checkpoints, and run this where it ran; looked in ${config.run}`;
  throw new RolloutError('not-found', `there is no checkpoint of ${id}${turn === undefined ? '' : ` up to turn ${turn}`}: ${why}`);
}

async function load(shelf: CheckpointShelf, { rollout, checkpoint }: SavedTurn): Promise<Checkpoint | undefined> {
  return checkpoint === null ? undefined : await shelf.load(rollout, checkpoint);
}

/** Each line is a command of the restored shell. */
async function runLines(sandbox: Sandbox, cwd: string, io: Io): Promise<void> {
  const isTerminal = io.stdin.isTTY === true;
  const lines = createInterface({ input: io.stdin, ...(isTerminal && { output: io.stdout }), prompt: `${cwd} $ ` });
  if (isTerminal) lines.prompt();
  for await (const line of lines) {
    const { output, cwd: now, end } = await sandbox.runShell(line, { timeoutMs: commandMs });
    io.stdout.write(output);
    if (end !== 'exited') return;
    if (now !== undefined) lines.setPrompt(`${now} $ `);
    if (isTerminal) lines.prompt();
  }
}
