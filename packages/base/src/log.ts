// Logs are JSON lines on standard error, starting with the event's name; standard output belongs to the commands.

import { definedOf } from '@millrace/protocol';
import { pino } from 'pino';
import type { Clock } from './clock.ts';

export type Fields = Record<string, unknown>;

export interface Log {
  info(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
}

export function openLog(options: { readonly level?: string; readonly base?: Fields } = {}): Log {
  const logger = pino(
    { level: options.level ?? 'info', base: options.base ?? {}, messageKey: 'event', formatters: { level: (label) => ({ level: label }) } },
    pino.destination({ fd: 2, sync: true }),
  );
  return {
    info: (event, fields = {}) => logger.info(fields, event),
    warn: (event, fields = {}) => logger.warn(fields, event),
    error: (event, fields = {}) => logger.error(fields, event),
  };
}

/** The same log with these fields in every line. */
export function withFields(log: Log, more: Fields): Log {
  return {
    info: (event, fields) => log.info(event, { ...fields, ...more }),
    warn: (event, fields) => log.warn(event, { ...fields, ...more }),
    error: (event, fields) => log.error(event, { ...fields, ...more }),
  };
}

/** The stacks of an error and its causes, for log fields. */
export function stackOf(error: unknown): string {
  const errors: Error[] = [];
  for (let next = error; next instanceof Error && !errors.includes(next); next = next.cause) errors.push(next);
  return errors.length === 0 ? String(error) : errors.map(({ stack, message }) => stack ?? message).join('\ncaused by: ');
}

/** Discards everything. */
export const silentLog: Log = { info() {}, warn() {}, error() {} };

const [firstDistanceMs, longestDistanceMs] = [10_000, 600_000];
/** An outage is over after this long without a failure, or after three times the last time between two of them. */
const quietMs = 30_000;

interface Outage {
  readonly startedAt: number;
  lastAt: number;
  nextLineAt: number;
  distanceMs: number;
  failures: number;
  /** Failures since the last line. */
  unlogged: number;
  stopTimer(): void;
}

function openOutage(now: number): Outage {
  const nextLineAt = now + firstDistanceMs;
  return { startedAt: now, lastAt: now, nextLineAt, distanceMs: firstDistanceMs, failures: 1, unlogged: 0, stopTimer: () => {} };
}

interface OutageOptions {
  /** Its timers must not keep the process alive. */
  readonly clock: Clock;
  /** What a failure is part of; absent for an event that is not a failure which is tried again. */
  outageOf(event: string, fields: Fields): string | undefined;
}

/**
 * One outage is a few lines, however many parts of the service meet it and however often they try again: its first failure, a failure now
 * and then, at growing distances, and its end.
 */
export function withOutages(log: Log, { clock, outageOf }: OutageOptions): Log {
  const outages = new Map<string, Outage>();
  const end = (name: string, { startedAt, lastAt, failures, unlogged }: Outage) => {
    outages.delete(name);
    // A failure that was not repeated has its line.
    if (failures > 1) log.info('outage-end', { outage: name, failures, unlogged, outageMs: Math.round(lastAt - startedAt) });
  };
  const waitForEnd = (name: string, outage: Outage, gapMs: number) => {
    outage.stopTimer();
    outage.stopTimer = clock.after(Math.max(quietMs, 3 * gapMs), () => end(name, outage));
  };
  /** Whether this failure has a line, and what it adds to it. */
  const note = (name: string): Fields | undefined => {
    const now = clock.monotonic();
    const known = outages.get(name);
    if (known === undefined) {
      const outage = openOutage(now);
      outages.set(name, outage);
      waitForEnd(name, outage, 0);
      return {};
    }
    const gapMs = now - known.lastAt;
    known.lastAt = now;
    known.failures += 1;
    known.unlogged += 1;
    waitForEnd(name, known, gapMs);
    if (now < known.nextLineAt) return undefined;
    const { unlogged, startedAt } = known;
    known.distanceMs = Math.min(2 * known.distanceMs, longestDistanceMs);
    known.nextLineAt = now + known.distanceMs;
    known.unlogged = 0;
    return { failures: unlogged, outageMs: Math.round(now - startedAt) };
  };
  const say = (level: 'warn' | 'error') => (event: string, fields?: Fields) => {
    const name = outageOf(event, fields ?? {});
    const added = name === undefined ? {} : note(name);
    if (added !== undefined) log[level](event, Object.keys(added).length === 0 ? fields : definedOf({ ...fields, ...added }));
  };
  return { info: (event, fields) => log.info(event, fields), warn: say('warn'), error: say('error') };
}
