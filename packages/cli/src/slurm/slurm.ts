// `millrace slurm`: a deployment on a Slurm cluster from one configuration file, as an ordinary user.

import type { CommandGroup } from '../command/command.ts';
import { autoscaleCommand } from './autoscale.ts';
import { downCommand } from './down.ts';
import { logsCommand } from './logs.ts';
import { nodeCommand } from './node/node.ts';
import { renderCommand } from './render.ts';
import { rollCommand } from './roll.ts';
import { scaleCommand } from './scale.ts';
import { statusCommand } from './status.ts';
import { upCommand } from './up.ts';

export const slurmCommands: CommandGroup = {
  name: 'slurm',
  summary: 'Starts, scales, shows and ends a deployment on a Slurm cluster.',
  actions: {
    up: upCommand,
    status: statusCommand,
    logs: logsCommand,
    scale: scaleCommand,
    autoscale: autoscaleCommand,
    roll: rollCommand,
    down: downCommand,
    render: renderCommand,
    node: nodeCommand,
  },
  usual: 'status',
};
