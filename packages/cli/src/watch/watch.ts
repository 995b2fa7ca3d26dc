// `millrace watch`: the service live in the terminal. It redraws in place on the alternate screen, follows the size of the
// terminal, and restores the terminal however it ends. Without a terminal it writes one line for each interval.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, openClient } from '@millrace/client';
import { messageOf, RolloutError, type ServiceStatus } from '@millrace/protocol';
import { type Arguments, type Command, serviceOptions, toServiceAddress } from '../command/command.ts';
import type { Io } from '../terminal/io.ts';
import { wantsColor } from '../terminal/text.ts';
import { renderWatchLine } from './watch-line.ts';
import { openWatchRecord, type WatchRecord } from './watch-model.ts';
import { renderWatch } from './watch-render.ts';

export const watchCommand: Command = {
  name: 'watch',
  summary: 'Shows stages, throughput, rewards, batches, backends and workers, live; q quits.',
  options: {
    once: { type: 'boolean', describe: 'Prints one frame and exits.' },
    json: { type: 'boolean', describe: 'Writes the status as a JSON line for each interval, or once with --once.' },
    interval: { type: 'string', value: 'TIME', describe: 'Time between lines where the output is not a terminal; 5s by default.' },
    ...serviceOptions,
  },
  examples: [
    'millrace watch',
    'millrace watch --once',
    'millrace watch --once --json | jq .tokens_per_s',
    'millrace watch --interval 30s >> watch.log',
    'millrace watch --url http://trainer-3:8007',
  ],
  run: runWatch,
};

const pollMs = 1000;
const drawMs = 250;
const eventsBefore = 2000;

async function runWatch(args: Arguments, io: Io): Promise<number> {
  const address = toServiceAddress(args, io);
  const intervalMs = args.duration('interval') ?? 5000;
  const stop = new AbortController();
  await using client = openClient({ ...address, timeoutMs: 2000 });
  const record = openWatchRecord(address.url, performance.now());
  const first = await client.status();
  record.addStatus(first, performance.now());
  if (args.flag('json')) return await writeJson(client, first, { io, intervalMs, isOnce: args.flag('once') });
  const reading = readEvents(client, record, { lastId: first.last_event_id, signal: stop.signal });
  await Promise.race([reading.caughtUp, sleep(500)]);
  if (args.flag('once')) {
    stop.abort();
    return printFrame(record, io);
  }
  const polling = pollService(client, record, stop.signal);
  await (io.stdout.isTTY === true ? showLive(record, io) : writeLines(record, io, intervalMs));
  stop.abort();
  await Promise.all([reading.done, polling]);
  return 0;
}

interface JsonOutput {
  readonly io: Io;
  readonly intervalMs: number;
  readonly isOnce: boolean;
}

/** Until Ctrl-C. A service that does not answer ends it, with the reason on standard error. */
async function writeJson(client: Client, first: ServiceStatus, { io, intervalMs, isOnce }: JsonOutput): Promise<number> {
  const stop = new AbortController();
  const release = io.onInterrupt(() => stop.abort());
  try {
    for (let status = first; ; status = await client.status()) {
      io.stdout.write(`${JSON.stringify({ at: new Date().toISOString(), ...status })}\n`);
      if (isOnce) return 0;
      await pauseFor(intervalMs, stop.signal);
      if (stop.signal.aborted) return 0;
    }
  } finally {
    release();
  }
}

function printFrame(record: WatchRecord, io: Io): number {
  const size = { columns: io.stdout.columns ?? 100, rows: io.stdout.rows ?? 60, color: wantsColor(io.stdout, io.env), dateMs: Date.now() };
  io.stdout.write(`${renderWatch(record.read(performance.now()), size).join('\n')}\n`);
  return 0;
}

/** Resolves at Ctrl-C. */
async function writeLines(record: WatchRecord, io: Io, intervalMs: number): Promise<void> {
  const stop = new AbortController();
  const release = io.onInterrupt(() => stop.abort());
  while (!stop.signal.aborted) {
    io.stdout.write(`${renderWatchLine(record.read(performance.now()), new Date())}\n`);
    await pauseFor(intervalMs, stop.signal);
  }
  release();
}

async function pollService(client: Client, record: WatchRecord, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      record.addStatus(await client.status({ signal }), performance.now());
    } catch (error) {
      record.addTrouble(`${messageOf(error)}; trying again`);
    }
    await pauseFor(pollMs, signal);
  }
}

interface EventRange {
  readonly lastId: number;
  readonly signal: AbortSignal;
}

/** Starts a little before now, so that the newest events are shown at once, and continues until the watch ends. */
function readEvents(client: Client, record: WatchRecord, { lastId, signal }: EventRange) {
  const caughtUp = Promise.withResolvers<void>();
  if (lastId === 0) caughtUp.resolve();
  let after = Math.max(0, lastId - eventsBefore);
  const follow = async () => {
    for await (const event of client.events({ after, signal })) {
      after = event.id;
      record.addEvent(event);
      if (event.id >= lastId) caughtUp.resolve();
    }
  };
  const followAgain = async () => {
    while (!signal.aborted) {
      // Polling the status reports what is wrong; here it is enough to try again.
      await follow().catch((error: unknown) => {
        if (error instanceof RolloutError && error.code === 'gone') after = 0; // from the oldest event that is kept
        return pauseFor(pollMs, signal);
      });
    }
  };
  return { caughtUp: caughtUp.promise, done: followAgain() };
}

/** Resolves when the user quits. */
async function showLive(record: WatchRecord, io: Io): Promise<void> {
  const { stdin, stdout } = io;
  const left = Promise.withResolvers<void>();
  const onKey = (key: Buffer) => {
    // In raw mode Ctrl-C arrives as a byte.
    if (key.includes('q') || key.includes(3)) left.resolve();
  };
  const draw = () => {
    const size = { columns: stdout.columns ?? 80, rows: stdout.rows ?? 24, color: wantsColor(stdout, io.env), dateMs: Date.now() };
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
  await sleep(ms, undefined, { signal }).catch(() => {}); // aborted: the caller checks the signal
}
