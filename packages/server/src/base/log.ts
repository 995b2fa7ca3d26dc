// Logs are JSON lines on standard error, starting with the event's name; standard output belongs to the commands.

import { pino } from 'pino';

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

/** The stacks of an error and its causes, for log fields. */
export function stackOf(error: unknown): string {
  const errors: Error[] = [];
  for (let next = error; next instanceof Error && !errors.includes(next); next = next.cause) errors.push(next);
  return errors.length === 0 ? String(error) : errors.map(({ stack, message }) => stack ?? message).join('\ncaused by: ');
}

/** Discards everything. */
export const silentLog: Log = { info() {}, warn() {}, error() {} };
