// The table of log events has every warning and error of the source, and nothing else; the page for operators shows it.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { logEvents, renderLogEvents, withHints } from '../src/log-events.ts';

const root = join(import.meta.dirname, '../../..');

function readLogged(): string[] {
  const files = globSync('packages/{gateway,base,tracing,model,engines,sandbox,store,scenarios,worker,server,cli}/src/**/*.ts', {
    cwd: root,
  });
  const texts = files.map((file) => readFileSync(join(root, file), 'utf8'));
  const calls = texts.flatMap((text) => [...text.matchAll(/[lL]og\s*\.(?:warn|error)\(\s*'([a-z-]+)'/g)]);
  return [...new Set(calls.map(([, event = '']) => event))].sort();
}

test('every warning and error has a line that says what it means and what to do, and no line is left over', () => {
  assert.deepEqual(Object.keys(logEvents).sort(), readLogged());
  for (const [event, { means, hint }] of Object.entries(logEvents)) {
    assert.match(means, /^[A-Z`].*\.$/, event);
    assert.match(hint, /^[A-Z`].*\.$/, event);
  }
});

test('docs/operations.md has the table of log events', () => {
  const page = readFileSync(join(root, 'docs/operations.md'), 'utf8');
  assert.ok(page.includes(renderLogEvents()), 'write it again: node scripts/write-docs.ts');
});

test('a warning carries what to do: in every JSON line, and once for people at a terminal', () => {
  const seen: unknown[] = [];
  const log = { ...silentLog, warn: (_event: string, fields = {}) => void seen.push(fields) };
  const { hint } = logEvents['clock-jump'];
  for (const when of ['always', 'first-time'] as const) {
    const hinted = withHints(log, { when });
    hinted.warn('clock-jump', { jumpMs: 1 });
    hinted.warn('clock-jump', { jumpMs: 2 });
  }
  const [one, two] = [{ jumpMs: 1 }, { jumpMs: 2 }];
  assert.deepEqual(seen, [{ ...one, hint }, { ...two, hint }, { ...one, hint }, two]);
});
