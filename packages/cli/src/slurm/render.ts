// `millrace slurm render`: the scripts that `up` submits, for a look before, or to submit by hand.

import { type SlurmRole, slurmRoles } from '@millrace/server';
import { type Command, UsageError } from '../command/command.ts';
import { deploymentOptions, toSlurmSettings } from './deployment/slurm-options.ts';
import { toScript } from './up.ts';

export const renderCommand: Command = {
  name: 'slurm render',
  summary: 'Prints the batch scripts that `slurm up` submits, and changes nothing.',
  positional: '[role]',
  options: deploymentOptions,
  examples: ['millrace slurm render --config cluster.json', 'millrace slurm render worker --config cluster.json > worker.sbatch'],
  async run(args, io) {
    const settings = toSlurmSettings(args, io);
    const [word] = args.positionals;
    const one = slurmRoles.find((role) => role === word);
    if (word !== undefined && one === undefined) throw new UsageError(`there is no role ${word}; there are ${slurmRoles.join(', ')}`);
    const { llm } = settings.config.slurm;
    const roles: readonly SlurmRole[] = one !== undefined ? [one] : llm.nodes > 0 ? slurmRoles : ['head', 'worker'];
    const scripts = await Promise.all(roles.map((role) => toScript(settings, role)));
    io.stdout.write(scripts.join('\n'));
    return 0;
  },
};
