// The test run of `npm run test:world`, started by scripts/world.ts once the engines are up: one file after the other, because they share
// the engines. Real engines on a busy machine have bad moments: up to six files that fail are run once more, and named.

import { globSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { runWithRepeat } from './tests/run-tests.ts';

const { values, positionals: given } = parseArgs({
  allowPositionals: true,
  options: {
    /** The slowest file, which records everything again, takes a few minutes on two idle cores; a busy machine takes many times as long. */
    'file-limit-s': { type: 'string', default: '2400' },
  },
});

// What takes long and changes only with its engine or its example is a command of its own, `npm run test:long`.
const usual = globSync('world/**/*.test.ts').filter((file) => !file.startsWith('world/long/'));
const failures = await runWithRepeat(given.length > 0 ? given : usual, {
  concurrency: 1,
  limitMs: Number(values['file-limit-s']) * 1000,
  refuseSkips: true,
});
for (const failure of failures) console.log(`✖ ${failure}`);
process.exit(failures.length === 0 ? 0 : 1);
