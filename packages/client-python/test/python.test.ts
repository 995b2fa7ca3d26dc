// Runs the Python client's own tests, one test here for each Python file, and checks that the client covers every route and every
// request field of the protocol. Without Python these tests skip with a reason; in CI that is a failure.

import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { test } from 'node:test';
import {
  batchRequest,
  batchStates,
  blames,
  cancelOutcomes,
  dialects,
  evaluationRequest,
  evaluationStates,
  joinRequest,
  logprobsModes,
  pauseModes,
  pauseRequest,
  policyStates,
  resumeRequest,
  rolloutStates,
  routes,
  segmentKinds,
  stages,
  stopReasons,
  submission,
} from '@millrace/protocol';
import { z } from 'zod';
import { python, runPython } from './run-python.ts';

const options = { skip: python.ok ? false : python.reason };

for (const file of globSync('**/test_*.py', { cwd: import.meta.dirname }).sort()) {
  test(`python: ${file}`, options, async () => {
    const module = file.replace(/\.py$/, '').replaceAll('/', '.');
    const { code, output } = await runPython(['-W', 'error', '-m', 'unittest', module]);
    assert.equal(code, 0, output);
    assert.match(output, /Ran [1-9]\d* tests? /);
    assert.doesNotMatch(output, /skipped=/);
  });
}

test('every route of the protocol has a method in Python or is excluded by name', options, async () => {
  const table = Object.fromEntries(Object.entries(routes).map(([name, { method, path }]) => [name, { method, path }]));
  const { code, output } = await runPython(['programs/routes_covered.py'], { input: JSON.stringify(table) });
  assert.equal(code, 0, output);
  assert.deepEqual(JSON.parse(output), { missing: {}, excluded_but_unknown: [] });
});

test('a route without a method in Python is reported', options, async () => {
  const table = { ...routes, dream: { method: 'POST', path: '/v1/dreams/{id}' } };
  const { output } = await runPython(['programs/routes_covered.py'], { input: JSON.stringify(table, ['dream', 'method', 'path']) });
  assert.match(output, /POST \/v1\/dreams\/\{id\} has no method/);
});

const requests = {
  rollout: toSchema(submission),
  batch: toSchema(batchRequest),
  evaluation: toSchema(evaluationRequest),
  join: toSchema(joinRequest),
  pause: toSchema(pauseRequest),
  resume: toSchema(resumeRequest),
  trainer: toSchema(routes.postTrainerStep.body),
  values: {
    RolloutState: rolloutStates,
    Stage: stages,
    StopReason: stopReasons,
    Blame: blames,
    CancelOutcome: cancelOutcomes,
    BatchState: batchStates,
    EvaluationState: evaluationStates,
    PolicyState: policyStates,
    PauseMode: pauseModes,
    Dialect: dialects,
    LogprobsMode: logprobsModes,
    SegmentKind: segmentKinds,
  },
};

test('typed inputs and values in Python are those of the protocol', options, async () => {
  const { code, output } = await runPython(['programs/requests_covered.py'], { input: JSON.stringify(requests) });
  assert.equal(code, 0, output);
  assert.deepEqual(JSON.parse(output), []);
});

test('a field or a value that only the protocol has is reported', options, async () => {
  const batch = toSchema(batchRequest.extend({ dream: z.string() }));
  const changed = { ...requests, batch, values: { PauseMode: ['wait', 'abort', 'dream'] } };
  const { output } = await runPython(['programs/requests_covered.py'], { input: JSON.stringify(changed) });
  assert.match(output, /BatchRequest has fields: dream only in the protocol/);
  assert.match(output, /BatchRequest requires: dream only in the protocol/);
  assert.match(output, /PauseMode: .*in Python, \['wait', 'abort', 'dream'\] in the protocol/);
});

function toSchema(schema: z.ZodType) {
  return z.toJSONSchema(schema, { io: 'input' });
}
