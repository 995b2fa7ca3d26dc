// `millrace policy` against the real server.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openRealService } from '../real-service.ts';

test('the policy is paused, shown as paused, and resumed under a new version', async () => {
  await using service = await openRealService();
  assert.match((await service.run(['policy'])).out, /^state {4}running for .*\nversion {2}0\ncalls {4}0 in progress\n$/);
  const paused = await service.run(['policy', 'pause', '--mode', 'abort']);
  assert.equal(paused.code, 0, paused.err);
  assert.match(paused.out, /^state {4}paused \(abort\) for [\s\S]*millrace policy resume\n$/);
  assert.match((await service.run(['policy', 'resume', '--version', '8'])).out, /^state {4}running for .*\nversion {2}8\n/);
  assert.equal(JSON.parse((await service.run(['policy', '--json'])).out).policy_version, 8);
});

test('an adapter is named by a resume, shown, and removed with --base-model', async () => {
  await using service = await openRealService();
  assert.match(
    (await service.run(['policy', 'resume', '--version', '8', '--adapter', 'step-8'])).out,
    /\nversion {2}8\nadapter {2}step-8\n/,
  );
  assert.doesNotMatch((await service.run(['policy', 'resume', '--base-model'])).out, /adapter/);
  assert.equal((await service.run(['policy', 'resume', '--base-model', '--adapter', 'x'])).code, 2);
});

test('a version that goes back, and a mode that does not exist, are refused', async () => {
  await using service = await openRealService();
  await service.run(['policy', 'pause']);
  await service.run(['policy', 'resume', '--version', '8']);
  await service.run(['policy', 'pause']);
  assert.equal((await service.run(['policy', 'resume', '--version', '7'])).code, 1);
  const { code, err } = await service.run(['policy', 'pause', '--mode', 'never']);
  assert.equal(code, 2);
  assert.match(err, /--mode never is not one of wait, abort/);
});
