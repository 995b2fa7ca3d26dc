// The chaos run with the store in a real PostgreSQL, which is also killed, crashes, and runs out of disk, and with a machine that joined from
// a network of its own: the network is cut, the machine dies, and its clock steps.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runChaos, skipPostgres } from '@millrace/testkit';

const faults = 30;

test(`${faults} faults, with PostgreSQL killed and a machine cut off among them, lose nothing, double nothing, leak nothing and leave nothing stuck`, {
  timeout: 600_000,
  skip: skipPostgres,
}, async (context) => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  context.diagnostic(`seed ${seed}`);
  const report = await runChaos({ faults, seed, store: 'postgres', onProgress: (line) => context.diagnostic(line) });
  const { lost, doubled, leaked, stuck, wrong } = report;
  assert.deepEqual({ lost, doubled, leaked, stuck, wrong }, { lost: [], doubled: [], leaked: [], stuck: [], wrong: [] });
  if (process.env.CI) assert.deepEqual(report.skipped, {}, 'every kind of fault can be caused here');
  for (const kind of ['kill-database', 'cut-network', 'kill-machine'] as const)
    assert.ok(report.skipped[kind] !== undefined || (report.faults[kind]?.hit ?? 0) > 0, `${kind} hit nothing`);
  assert.ok(report.attempts > report.rollouts, 'the faults hit something');
  assert.ok(report.done > 0 && report.sampledTokens > 0 && report.groups > 0);
});
