// `millrace slurm node`: what the scripts of a deployment run on a node: the head, a worker machine or an LLM server.

import { resolve } from 'node:path';
import { messageOf } from '@millrace/protocol';
import { StartError, slurmRoles } from '@millrace/server';
import { type Arguments, type Command, type Io, UsageError } from '../../command/command.ts';
import { onStopAsked } from '../../operate/config-options.ts';
import { readDeployment } from '../deployment/slurm-options.ts';
import { runHead } from './head.ts';
import { runLlmNode } from './llm-node.ts';
import type { StopSignals } from './stop-signals.ts';
import { runWorkerNode } from './worker-node.ts';

/** Starting it again would fail in the same way: the script does not put the job back into the queue. */
const cannotStartCode = 78;

export const nodeCommand: Command = {
  name: 'slurm node',
  summary: 'Runs one part of a deployment on a node. The scripts that `slurm up` submits call it.',
  positional: '<role>',
  options: { folder: { type: 'string', value: 'FOLDER', describe: 'The folder of the deployment.' } },
  examples: ['millrace slurm node worker --folder ~/.millrace/slurm/millrace'],
  run: runNode,
};

async function runNode(args: Arguments, io: Io): Promise<number> {
  const role = slurmRoles.find((one) => one === args.positionals[0]);
  if (role === undefined) throw new UsageError(`there is no role ${args.positionals[0]}; there are ${slurmRoles.join(', ')}`);
  const folder = args.text('folder');
  if (folder === undefined) throw new UsageError('--folder is missing: the folder of the deployment');
  const settings = readDeployment(resolve(folder));
  const [asked, urged] = [new AbortController(), new AbortController()];
  const release = onStopAsked(io, (times) => (times === 1 ? asked : urged).abort());
  const stop: StopSignals = { asked: asked.signal, urged: urged.signal };
  try {
    if (role === 'head') return await runHead(settings, stop, io);
    return await (role === 'worker' ? runWorkerNode : runLlmNode)(settings, stop);
  } catch (error) {
    io.stderr.write(`millrace: ${messageOf(error)}\n`);
    return error instanceof StartError ? cannotStartCode : 1;
  } finally {
    release();
  }
}
