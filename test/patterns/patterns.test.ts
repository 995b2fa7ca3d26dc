// No text may freeze a process by a regular expression: each takes time linear in the length of the text.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkPattern, listPatterns, readRecord } from './check-patterns.ts';
import { findPatterns } from './find-patterns.ts';

/** Patterns, or the start of the places they are in, with the reason why no text of an agent or a caller makes them slow. */
const exceptions: Readonly<Record<string, string>> = {
  '/\\/+$/': 'addresses and paths of the configuration, of a task file and of .dockerignore',
  '/^\\/+|\\/+$/g': 'the prefix of a bucket, in the configuration',
  'packages/cli/src/main.ts': 'not a pattern: the path of its interpreter',
  'packages/cli/src/attack/hackers/forge-answers.ts': "the task author's own check",
  'packages/cli/src/attack/hackers/programs.ts': "the task author's own check",
  'packages/cli/src/attack/target.ts': "the task author's own check",
  'packages/cli/src/command/parse-arguments.ts': 'our own descriptions of commands',
  'packages/cli/src/rollouts/show-render.ts': 'a message that one user reads in their own process',
  'packages/answers/src/compare/variants.ts': "anchored at the start of the text, and runs in a grader's thread",
  'packages/answers/src/find-answer.ts': "the repetition has a bound, and it runs in a grader's thread",
  'packages/answers/src/read/normalise.ts': "repetitions have bounds or start once in a number, and it runs in a grader's thread",
  'packages/answers/src/read/tokens.ts': "groups of digits start once, braces end at the next one, and it runs in a grader's thread",
  'packages/answers/src/read/words.ts': "repetitions have bounds or end at the next brace, and it runs in a grader's thread",
  'packages/scenarios/src/stem/choice.ts': "the repetition has a bound, and it runs in a grader's thread",
  'packages/scenarios/src/swe/rows/row.ts': 'starts only at a line, and each place of the line is tried once',
  'packages/scenarios/src/swe/rows/test-commands.ts': 'starts only at a line, and ends with it',
  'packages/model/src/tokenizer/split/mark-order.ts': 'the repetition has a bound, and long texts are tokenised in steps',
  'packages/model/src/tokenizer/split/normalizers.ts': 'the repetition has a bound, and long texts are tokenised in steps',
  'packages/model/src/tool-calls/json-formats.ts': 'starts after a mark, and long turns are read in a thread with a deadline',
  'packages/model/src/tool-calls/xml-formats.ts': 'starts after a mark, and long turns are read in a thread with a deadline',
  'packages/worker/src/inference/pool/server-probe.ts': 'the metrics of a backend',
  'packages/sandbox/src/limits/cgroups.ts': 'files of the kernel',
  'packages/scenarios/src/call-scenario.ts': 'lines of less than 1,000 characters',
  'packages/scenarios/src/harbor/task-folder.ts': "the task author's own Dockerfile",
  'packages/scenarios/src/load/import-error.ts': 'the message of a failed import, at the start',
  'packages/scenarios/src/swe/grade/verdict.ts': "every repetition has a bound, and it runs in a grader's thread",
  'packages/scenarios/src/swe/repository/protected-paths.ts': "starts only after a slash, and runs in a grader's thread",
  'packages/store/src/sqlite/engine/connection.ts': 'our own statements',
  'packages/model/src/template/written-turn.ts': 'what a chat template writes around a fixed text',
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
