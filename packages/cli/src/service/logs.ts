// `millrace logs`: what happened in the service, from its event log: all of it, or one rollout's.

import { type Client, openClient } from '@millrace/client';
import { type Event, RolloutError } from '@millrace/protocol';
import { type Arguments, type Command, type Io, serviceOptions, toServiceAddress } from '../command/command.ts';
import { findRollout } from '../command/find-id.ts';
import { describeEvent } from '../terminal/event-text.ts';

export const serviceLogsCommand: Command = {
  name: 'logs',
  summary: 'Prints the events of the service, or of one rollout: starts, ends, failures, backends, workers.',
  positional: '[rollout]',
  options: {
    lines: {
      type: 'string',
      short: 'n',
      value: 'N',
      describe: 'How many of the newest events are read; 50 by default, 20,000 for one rollout.',
    },
    follow: { type: 'boolean', short: 'f', describe: 'Prints what happens from now on too, until Ctrl-C.' },
    json: { type: 'boolean', describe: 'Writes each event as a JSON line.' },
    ...serviceOptions,
  },
  examples: ['millrace logs', 'millrace logs -f', 'millrace logs r-74822c', 'millrace logs -n 1000 --json | jq .kind'],
  run: runLogs,
};

async function runLogs(args: Arguments, io: Io): Promise<number> {
  await using client = openClient(toServiceAddress(args, io));
  const [start] = args.positionals;
  const id = start === undefined ? undefined : (await findRollout(client, start)).id;
  const { last_event_id: last } = await client.status();
  const stop = new AbortController();
  const release = io.onInterrupt(() => stop.abort());
  const lines = args.count('lines', 1) ?? (id === undefined ? 50 : 20_000);
  const isLast = (event: Event) => !args.flag('follow') && event.id >= last;
  try {
    if (last === 0 && !args.flag('follow')) return 0;
    for await (const event of readEvents(client, Math.max(0, last - lines), stop.signal)) {
      const isMeant = id === undefined ? event.kind !== 'backend-traffic' : event.rollout_id === id;
      if (isMeant)
        io.stdout.write(
          `${args.flag('json') ? JSON.stringify(event) : `${event.at.slice(0, 19)}Z  ${event.kind.padEnd(15)}  ${describeEvent(event, Number.POSITIVE_INFINITY)}`}\n`,
        );
      if (isLast(event)) break;
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    release();
  }
  return 0;
}

/** Those that are kept, if the first of them no longer are. */
async function* readEvents(client: Client, after: number, signal: AbortSignal): AsyncIterable<Event> {
  try {
    yield* client.events({ after, signal });
  } catch (error) {
    if (!(error instanceof RolloutError) || error.code !== 'gone') throw error;
    yield* client.events({ after: Number(error.details?.oldest ?? 1) - 1, signal });
  }
}
