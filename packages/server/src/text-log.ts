// The log for people at a terminal: a line for each warning and error, with what JSON lines would say, and no line for what goes well.

import { backgroundClock, systemClock } from '@millrace/base/clock';
import { type Fields, type Log, openLog, silentLog, withOutages } from '@millrace/base/log';
import { outageOf, withHints } from './log-events.ts';

/** `none` is for programs that bring their own workers and read their events. */
export const logFormats = ['text', 'json', 'none'] as const;
export type LogFormat = (typeof logFormats)[number];

interface TextLogOptions {
  readonly write: (line: string) => void;
  readonly color?: boolean;
}

/** Information that someone at a terminal waits for; the rest of that level is left out. */
const shownInfo: readonly string[] = ['image-progress', 'outage-end'];

function openTextLog({ write, color = false }: TextLogOptions): Log {
  const say = (mark: string, code: number, event: string, fields: Fields) => {
    const time = new Date(systemClock.now()).toTimeString().slice(0, 8);
    const painted = color ? `\x1b[${code}m${mark} ${event}\x1b[0m` : `${mark} ${event}`;
    write(`${time} ${painted}${renderFields(fields)}\n`);
  };
  return {
    info(event, fields = {}) {
      if (shownInfo.includes(event)) say('·', 2, event, fields);
    },
    warn: (event, fields = {}) => say('!', 33, event, fields),
    error: (event, fields = {}) => say('✖', 31, event, fields),
  };
}

/** What people read first comes last, as a sentence: the message; then comes everything else, as name=value. */
function renderFields({ message, error, reason, stack: _, ...rest }: Fields): string {
  const said = [message, error, reason].filter((text) => text !== undefined).map((text) => toLine(text));
  const pairs = Object.entries(rest)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}=${toLine(value)}`);
  return [said.length > 0 ? `: ${said.join(': ')}` : '', pairs.length > 0 ? ` (${pairs.join(' ')})` : ''].join('');
}

/** One line, so that what an agent wrote cannot pose as a line of the log. */
function toLine(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  const [first = '', ...rest] = text.split('\n');
  const last = rest.pop();
  const lines = last === undefined ? [first] : [first.trimEnd(), ...rest.map((line) => line.trim()).filter(Boolean), last.trimStart()];
  return lines.join(' ⏎ ').replace(/\p{Cc}/gu, '�');
}

/** The log of a server or worker process, on standard error. */
export function openProcessLog(format: LogFormat, role: 'server' | 'worker'): Log {
  if (format === 'none') return silentLog;
  if (format === 'json')
    return withOutages(withHints(openLog({ base: { process: role, pid: process.pid } }), { when: 'always' }), {
      clock: backgroundClock,
      outageOf,
    });
  const text = openTextLog({ write: (line) => process.stderr.write(line), color: process.stderr.isTTY === true && !process.env.NO_COLOR });
  return withOutages(withHints(text, { when: 'first-time' }), { clock: backgroundClock, outageOf });
}
