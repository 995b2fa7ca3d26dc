// The page's export in ATIF against the Python client's, on the golden files that both read.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { rolloutView, trajectoryView } from '@millrace/protocol';
import { toAtif } from '../src/logic/atif.ts';

const golden = join(import.meta.dirname, '../../protocol/test/golden');
const python = `
import json, sys
from millrace.export import to_atif
from millrace.rollouts.rollout import RolloutView
from millrace.wire.codec import from_wire
from millrace.trajectories.trajectory import trajectory_from_json
folder, name = sys.argv[1:]
read = lambda file: json.load(open(folder + '/' + file))
trajectory = trajectory_from_json(read(name))
branches = sorted({one.head.branch for one in trajectory.segments})
print(json.dumps([to_atif(from_wire(RolloutView, read("rollout.json")), trajectory, branch=one) for one in branches]))
`;

test('ATIF of a trajectory, with and without branches, is what the Python client writes', async () => {
  const rollout = rolloutView.parse(JSON.parse(await readFile(join(golden, 'rollout.json'), 'utf8')));
  for (const name of ['trajectory.json', 'branched-trajectory.json']) {
    const env = { ...process.env, PYTHONPATH: join(import.meta.dirname, '../../client-python/src') };
    const expected = JSON.parse(execFileSync('python3', ['-c', python, golden, name], { env, encoding: 'utf8' }));
    const trajectory = trajectoryView.parse(JSON.parse(await readFile(join(golden, name), 'utf8')));
    const [first] = expected;
    assert.deepEqual(JSON.parse(JSON.stringify(toAtif(rollout, trajectory, first.agent.version))), expected, name);
  }
});
