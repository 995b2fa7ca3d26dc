// Reads the records of the reporter: what pytest or unittest itself saw, as lines of its log.

import { createHash, createHmac } from 'node:crypto';

export type TestRunner = 'pytest' | 'unittest';

export interface Attested {
  /** Whether the runner started and the reporter with it. */
  readonly started: boolean;
  /** Whether every runner that started also ended as it should, and not by a sudden exit. */
  readonly ended: boolean;
  /** Lines as the runner writes them. */
  readonly lines: readonly string[];
}

/** Processes of one test command that may report. */
const maxKeys = 200;

interface Reporting {
  readonly key: string;
  count: number;
}

/** Lines whose signature is wrong were written by code under test, and are ignored. The records of a process must be complete and in order. */
export function readRecords(records: string, firstKey: string, runner: TestRunner): Attested {
  const known: Reporting[] = [{ key: firstKey, count: 0 }];
  const lines: string[] = [];
  let [starts, ends] = [0, 0];
  for (const line of records.split('\n')) {
    const [signature, text] = [line.slice(0, 64), line.slice(65)];
    const from = findSigner(known, signature, text);
    const [count, kind, ...fields] = from ? parseRecord(text) : [];
    if (!from || count !== from.count) continue;
    from.count += 1;
    if (kind === 'start' && fields[0] === runner) starts += 1;
    else if (kind === 'end' && fields[0] === runner) ends += 1;
    else if (kind === runner) lines.push(...toLines(runner, fields));
  }
  return { started: starts > 0, ended: starts > 0 && ends === starts, lines };
}

/** The last process first. A new one has the key that follows. */
function findSigner(known: Reporting[], signature: string, text: string): Reporting | undefined {
  if (signature.length < 64) return undefined;
  const signs = ({ key }: Reporting) => createHmac('sha256', key).update(text).digest('hex') === signature;
  const found = known.findLast(signs);
  if (found) return found;
  for (let last = known.at(-1); last && known.length < maxKeys; last = known.at(-1)) {
    const next = { key: nextKey(last.key), count: 0 };
    if (known.length - 1 > known.filter(({ count }) => count > 0).length + maxUnused) return undefined;
    known.push(next);
    if (signs(next)) return next;
  }
  return undefined;
}

/** Processes that take a key and report nothing. */
const maxUnused = 50;

const nextKey = (key: string): string => createHash('sha256').update(`${key}next`).digest('hex');

function parseRecord(text: string): unknown[] {
  const value: unknown = JSON.parse(text);
  return Array.isArray(value) ? value : [];
}

function toLines(runner: TestRunner, [name, ...rest]: readonly unknown[]): string[] {
  if (runner === 'pytest') return [`${statusWord(rest)} ${String(name)}`];
  const [description, status] = rest;
  return [name, description].filter((one) => one !== '').map((one) => `${String(one)} ... ${String(status)}`);
}

/** As the summary of pytest names it. An expected failure that passes is none of the words, and does not count as passed there either. */
function statusWord([when, outcome, isExpected]: readonly unknown[]): string {
  if (isExpected === true) return outcome === 'skipped' ? 'XFAIL' : 'XPASS';
  if (outcome === 'skipped') return 'SKIPPED';
  if (outcome === 'passed') return 'PASSED';
  return when === 'call' ? 'FAILED' : 'ERROR';
}
