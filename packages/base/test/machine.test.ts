// What a machine says of itself.

import assert from 'node:assert/strict';
import { totalmem } from 'node:os';
import { test } from 'node:test';
import { readMachine } from '../src/machine.ts';

test('the memory of a job is what Slurm granted, for the node or for each of its cores', () => {
  const memoryOf = (env: Record<string, string>) => readMachine('n1', { SLURM_CPUS_ON_NODE: '2', ...env }).memoryBytes;
  assert.equal(memoryOf({ SLURM_MEM_PER_NODE: '500' }), 500 * 2 ** 20);
  assert.equal(memoryOf({ SLURM_MEM_PER_CPU: '300' }), 600 * 2 ** 20);
  assert.equal(memoryOf({}), totalmem());
  assert.equal(memoryOf({ SLURM_MEM_PER_CPU: '999999999' }), totalmem());
});
