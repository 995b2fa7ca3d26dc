// A lane of the test run of `npm run test:world`, started by scripts/world.ts: one file after the other. One lane has the files that share the
// engines, and what only computes; the other has services, trainers and sandboxes, which often wait. Real engines on a busy machine have bad
// moments: up to six files that fail are run once more, and named.

import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { runWithRepeat } from './tests/run-tests.ts';

const { values, positionals: given } = parseArgs({
  allowPositionals: true,
  options: {
    /** The slowest file, which records everything again, takes a few minutes on two idle cores; a busy machine takes many times as long. */
    'file-limit-s': { type: 'string', default: '2400' },
    /** `engines` or `services`; all by default. */
    lane: { type: 'string' },
  },
});

// What takes long and changes only with its engine or its example is a command of its own, `npm run test:long`.
const usual = globSync('world/**/*.test.ts').filter((file) => !file.startsWith('world/long/') && isInLane(file));
const failures = await runWithRepeat(given.length > 0 ? given : usual, {
  concurrency: 1,
  limitMs: Number(values['file-limit-s']) * 1000,
  refuseSkips: true,
});
for (const failure of failures) console.log(`✖ ${failure}`);
process.exit(failures.length === 0 ? 0 : 1);

function isInLane(file: string): boolean {
  const isOfServices = /^world\/(clients|dashboard|harnesses|sandbox|scenarios|services|trainers)\//.test(file) && !sharesEngines(file);
  return values.lane === undefined || isOfServices === (values.lane === 'services');
}

/** Whether it, or a file of this tier that it imports, uses the engines that scripts/world.ts starts. */
function sharesEngines(file: string, seen = new Set<string>()): boolean {
  seen.add(file);
  const paths = [...readFileSync(file, 'utf8').matchAll(/from '(\.[^']*)'/g)].map(([, path = '']) => join(dirname(file), path));
  return paths.some(
    (path) => path === 'world/engines/shared-engines.ts' || (path.startsWith('world/') && !seen.has(path) && sharesEngines(path, seen)),
  );
}
