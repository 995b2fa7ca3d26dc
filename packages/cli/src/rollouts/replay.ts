// `millrace replay`: continues a rollout from one of its turns with the live policy, as a fork of it, and waits for the end.

import { openClient } from '@millrace/client';
import { definedOf } from '@millrace/protocol';
import { type Arguments, type Command, serviceOptions, toServiceAddress } from '../command/command.ts';
import { findRollout } from '../command/find-id.ts';
import type { Io } from '../terminal/io.ts';

export const replayCommand: Command = {
  name: 'replay',
  summary: 'Continues a rollout after a turn that was kept, with the policy of now, and shows how that ends. The rollout stays as it is.',
  positional: '<id>',
  options: {
    from: { type: 'string', value: 'N', describe: 'After this turn; the last one that was kept by default (`keep_checkpoints`).' },
    n: { type: 'string', value: 'N', describe: 'How many times; once by default.' },
    temperature: { type: 'string', value: 'N', describe: 'Instead of that of the rollout.' },
    ...serviceOptions,
  },
  examples: ['millrace replay r-1234 --from 7', 'millrace replay r-1234 --from 7 --n 8 --temperature 1.2'],
  run: runReplay,
};

async function runReplay(args: Arguments, io: Io): Promise<number> {
  await using client = openClient(toServiceAddress(args, io));
  const { id } = await findRollout(client, args.positionals[0] ?? '');
  const sampling = definedOf({ temperature: args.number('temperature', 0) });
  const { turn, rollouts } = await client.fork(id, { n: args.count('n', 1) ?? 1, sampling, ...definedOf({ turn: args.count('from', 1) }) });
  io.stderr.write(`${id} continues after turn ${turn} as ${rollouts.map((one) => one.id).join(', ')}\n`);
  let failed = 0;
  const ids = rollouts.map((one) => one.id);
  for await (const { id: own, state, reward, failure, result } of client.results(ids)) {
    if (reward === null) failed += 1;
    io.stdout.write(`${own}  ${state}  reward ${reward ?? 'none'}  ${result?.turns ?? 0} turns${failure ? `  ${failure.message}` : ''}\n`);
  }
  io.stderr.write(`To read one: millrace show ${ids[0]}\n`);
  return failed === 0 ? 0 : 1;
}
