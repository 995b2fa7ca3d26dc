// Logs are JSON lines on standard error, the event's name first; standard output belongs to the commands.

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

/** For tests and libraries: says nothing. */
export const silentLog: Log = { info() {}, warn() {}, error() {} };
