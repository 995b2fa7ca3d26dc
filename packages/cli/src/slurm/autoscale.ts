// `millrace slurm autoscale`: follows the waiting line of a deployment and scales its worker nodes, until Ctrl-C. It can be stopped and
// started at any time: what it decides on is read at each look.

import { sleep } from '@millrace/base/clock';
import { messageOf } from '@millrace/protocol';
import { type Arguments, type Command, type Io, UsageError } from '../command/command.ts';
import { AutoscalePolicy, type Look } from './autoscale-policy.ts';
import type { Deployment } from './deployment/deployment.ts';
import { deploymentOptions, openHeadClient, toSlurmSettings } from './deployment/slurm-options.ts';
import { scaleTo } from './scale.ts';
import { listActive } from './up.ts';

export const autoscaleCommand: Command = {
  name: 'slurm autoscale',
  summary: 'Scales the worker nodes by the waiting line until Ctrl-C: up within a minute, down after ten calm minutes.',
  options: {
    ...deploymentOptions,
    min: { type: 'string', value: 'N', describe: 'The fewest nodes; 1 by default.' },
    max: { type: 'string', value: 'N', describe: 'The most nodes.' },
    'per-node': { type: 'string', value: 'N', describe: 'Rollouts that one node runs at the same time.' },
    'up-after': { type: 'string', value: 'TIME', describe: 'How long more nodes must have been needed; 30s by default.' },
    'down-after': { type: 'string', value: 'TIME', describe: 'How long fewer nodes must have been enough; 10m by default.' },
    every: { type: 'string', value: 'TIME', describe: 'How often it looks; 10s by default.' },
  },
  examples: ['millrace slurm autoscale --config cluster.json --min 2 --max 64 --per-node 128'],
  run: runAutoscale,
};

async function runAutoscale(args: Arguments, io: Io): Promise<number> {
  const { deployment } = toSlurmSettings(args, io);
  const [least, most, perNode] = [args.count('min', 0) ?? 1, args.count('max', 1), args.count('per-node', 1)];
  if (most === undefined || perNode === undefined) throw new UsageError('--max and --per-node are missing');
  if (most < least) throw new UsageError(`--max ${most} is less than --min ${least}`);
  const [upAfterMs, downAfterMs] = [args.duration('up-after') ?? 30_000, args.duration('down-after') ?? 600_000];
  const policy = new AutoscalePolicy({ least, most, perNode, upAfterMs, downAfterMs });
  const stop = new AbortController();
  const release = io.onInterrupt(() => stop.abort());
  while (!stop.signal.aborted) {
    try {
      const look = await lookAround(deployment);
      const nodes = policy.choose(look);
      if (nodes !== look.nodes) await scaleTo(deployment, nodes, io);
    } catch (error) {
      // Slurm's controller and the head restart now and then; the next look may succeed.
      io.stderr.write(`millrace: ${messageOf(error)}\n`);
    }
    await sleep(args.duration('every') ?? 10_000, { signal: stop.signal }).catch(() => {}); // Ctrl-C ends it
  }
  release();
  return 0;
}

async function lookAround(deployment: Deployment): Promise<Look> {
  await using client = await openHeadClient(deployment, 10_000);
  if (client === undefined) throw new Error(`${deployment.name} is not up; start it with: millrace slurm up`);
  const { queued, init, ready, run, evaluate } = (await client.status()).rollouts;
  const nodes = (await listActive(deployment)).filter(({ role }) => role === 'worker').length;
  return { nowMs: performance.now(), nodes, queued, held: init + ready + run + evaluate };
}
