// No text may freeze a process by a regular expression: each takes time linear in the length of the text.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkPattern, listPatterns, readRecord } from './check-patterns.ts';
import { findPatterns } from './find-patterns.ts';

/** Patterns, or the start of the places they are in, with the reason why no text of an agent or a caller makes them slow. */
const exceptions: Readonly<Record<string, string>> = {
  '/\\/+$/': 'addresses and paths of the configuration, of a task file and of .dockerignore',
  '/^\\/+|\\/+$/g': 'the prefix of a bucket, in the configuration',
  'packages/cli/src/': 'a command reads its own arguments and what the service sends to one user',
  'packages/server/src/scenario/answer/': "runs only in a grader's thread, which has a deadline",
  'packages/server/src/scenario/stem/': "runs only in a grader's thread, which has a deadline, or on one line of a judge",
  'packages/server/src/inference/pool/server-probe.ts': 'the metrics of a backend',
  'packages/server/src/sandbox/launch/node-libraries.ts': 'what ldd prints about Node itself',
  'packages/server/src/sandbox/limits/cgroups.ts': 'files of the kernel',
  'packages/server/src/sandbox/images/dockerfile/': "the task author's own Dockerfile",
  'packages/server/src/scenario/call-scenario.ts': 'lines of less than 1,000 characters',
  'packages/server/src/scenario/harbor/task-folder.ts': "the task author's own Dockerfile",
  'packages/server/src/scenario/load/import-error.ts': 'the message of a failed import, at the start',
  'packages/server/src/scenario/swe/grade/verdict.ts': "every repetition has a bound, and it runs in a grader's thread",
  'packages/server/src/scenario/swe/repository/protected-paths.ts': "starts only after a slash, and runs in a grader's thread",
  'packages/server/src/scenario/swe/rows/': 'rows and patches of the task author',
  'packages/server/src/store/sqlite/engine/connection.ts': 'our own statements',
  'packages/server/src/trajectory/template/written-turn.ts': 'what a chat template writes around a fixed text',
  'packages/server/src/trajectory/tool-calls/': 'every repetition has a bound or starts after a mark; test/freeze searches for slow turns',
  'packages/server/src/trajectory/tokenizer/split/': 'the repetition has a bound, and long texts are tokenised in steps',
};

test('every regular expression takes linear time, or reads no text of an agent or a caller', { timeout: 300_000 }, async () => {
  const record = readRecord();
  const slow: string[] = [];
  for (const pattern of listPatterns()) {
    const { literal, places } = pattern;
    const isExcepted = (place: string) => Object.keys(exceptions).some((start) => place.startsWith(start));
    if (record.has(literal) || exceptions[literal] !== undefined || places.every(isExcepted)) continue;
    const fault = await checkPattern(pattern, 30_000);
    if (fault !== undefined) slow.push(`${places.join(' ')}: ${fault}: ${literal}`);
  }
  assert.deepEqual(slow, [], 'rewrite the pattern, then run node test/patterns/check-patterns.ts');
});

test('a pattern that takes the square of the length is found', async () => {
  const { patterns } = findPatterns(
    // biome-ignore lint/suspicious/noTemplateCurlyInString: source text
    "const a = 1 / 2 / 3; /* /b+/ */ const c = `/d+/ ${x ? /\\s+$/g : ''} /e/`; return /[/]f/.test('/g/');",
  );
  assert.deepEqual(patterns, [
    { source: '\\s+$', flags: 'g', line: 1 },
    { source: '[/]f', flags: '', line: 1 },
  ]);
  const [trailing] = patterns.map(({ source, flags }) => ({ literal: '', places: [], source, flags }));
  assert.match((trailing && (await checkPattern(trailing, 30_000))) ?? '', /2nd degree polynomial/);
});
