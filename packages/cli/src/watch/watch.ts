// `millrace watch`: the service live in the terminal. It redraws in place on the alternate screen, follows the terminal's
// size, and leaves the terminal as it found it, however it ends.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, openClient } from '@millrace/client';
import { messageOf } from '@millrace/protocol';
import { type Arguments, type Command, type Io, serviceOptions, toServiceAddress, UsageError } from '../command/command.ts';
import { wantsColor } from '../terminal/text.ts';
import { openWatchRecord, type WatchRecord } from './watch-model.ts';
import { renderWatch } from './watch-render.ts';

export const watchCommand: Command = {
  name: 'watch',
  summary: 'Shows rollouts, stages, rates, failures, backends and workers, live; q quits.',
  options: {
    once: { type: 'boolean', describe: 'Prints one frame and ends, as it does when its output is no terminal.' },
    ...serviceOptions,
  },
  examples: ['millrace watch', 'millrace watch --once', 'millrace watch --url http://trainer-3:8007'],
  run: runWatch,
};

const pollMs = 1000;
const drawMs = 250;
const eventsBefore = 500;

async function runWatch(args: Arguments, io: Io): Promise<number> {
  if (args.positionals.length > 0) throw new UsageError(`watch takes no ${args.positionals[0]}`);
  const address = toServiceAddress(args, io);
  const stop = new AbortController();
  await using client = openClient({ ...address, timeoutMs: 2000 });
  const record = openWatchRecord(address.url, performance.now());
  const first = await client.status();
  record.addStatus(first, performance.now());
  const reading = readEvents(client, record, { lastId: first.last_event_id, signal: stop.signal });
  if (args.flag('once') || io.stdout.isTTY !== true) {
    await Promise.race([reading.caughtUp, sleep(500)]);
    stop.abort();
    return printOnce(record, io);
  }
  const polling = readStatus(client, record, stop.signal);
  await showLive(record, io);
  stop.abort();
  await Promise.all([reading.done, polling]);
  return 0;
}

function printOnce(record: WatchRecord, io: Io): number {
  const size = { columns: io.stdout.columns ?? 100, rows: io.stdout.rows ?? 40, color: wantsColor(io.stdout, io.env) };
  io.stdout.write(`${renderWatch(record.read(performance.now()), size).join('\n')}\n`);
  return 0;
}

async function readStatus(client: Client, record: WatchRecord, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      record.addStatus(await client.status({ signal }), performance.now());
    } catch (error) {
      record.addTrouble(`trying again: ${messageOf(error)}`);
    }
    await pauseFor(pollMs, signal);
  }
}

interface Following {
  readonly lastId: number;
  readonly signal: AbortSignal;
}

/** Begins a little before now, so that the newest events are there at once; goes on for as long as the watch does. */
function readEvents(client: Client, record: WatchRecord, { lastId, signal }: Following) {
  const caughtUp = Promise.withResolvers<void>();
  if (lastId === 0) caughtUp.resolve();
  let after = Math.max(0, lastId - eventsBefore);
  const follow = async () => {
    for await (const event of client.events({ after, signal })) {
      after = event.id;
      record.addEvent(event, { nowMs: performance.now(), live: event.id > lastId });
      if (event.id >= lastId) caughtUp.resolve();
    }
  };
  const followOn = async () => {
    while (!signal.aborted) {
      // The status says what is wrong; here it is enough to try again.
      await follow().catch(() => pauseFor(pollMs, signal));
    }
  };
  return { caughtUp: caughtUp.promise, done: followOn() };
}

/** Resolves when the user leaves. */
async function showLive(record: WatchRecord, io: Io): Promise<void> {
  const { stdin, stdout } = io;
  const left = Promise.withResolvers<void>();
  const onKey = (key: Buffer) => {
    // Ctrl-C comes as a byte while the terminal is raw.
    if (key.includes('q') || key.includes(3)) left.resolve();
  };
  const draw = () => {
    const size = { columns: stdout.columns ?? 80, rows: stdout.rows ?? 24, color: wantsColor(stdout, io.env) };
    const lines = renderWatch(record.read(performance.now()), size).map((line) => `${line}\x1b[K`);
    stdout.write(`\x1b[?2026h\x1b[H${lines.join('\r\n')}\x1b[J\x1b[?2026l`);
  };
  const release = io.onInterrupt(left.resolve);
  const restore = () => stdout.write('\x1b[?25h\x1b[?1049l');
  process.once('exit', restore);
  stdout.write('\x1b[?1049h\x1b[?25l');
  stdin.setRawMode?.(true);
  stdin.on('data', onKey);
  stdout.on('resize', draw);
  const timer = setInterval(draw, drawMs);
  draw();
  try {
    await left.promise;
  } finally {
    clearInterval(timer);
    release();
    stdout.off('resize', draw);
    stdin.off('data', onKey);
    stdin.setRawMode?.(false);
    stdin.pause();
    process.off('exit', restore);
    restore();
  }
}

async function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {}); // aborted: the caller looks at the signal
}
