// The error table and its one error class.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blame, blames, errorBody, errorCodes, errorTable, RolloutError, toErrorBody, toRolloutError } from '@millrace/protocol';

test('every code has a known blame and an HTTP error status', () => {
  for (const code of errorCodes) {
    const row = errorTable[code];
    assert.ok(blames.includes(row.blame), code);
    assert.ok(row.status >= 400 && row.status < 600, code);
  }
});

test('an error of the caller is never retryable, except slowness, and a busy service always is', () => {
  const exempt = new Set(['request-timeout']);
  for (const code of errorCodes)
    if (errorTable[code].blame === 'caller' && !exempt.has(code)) assert.equal(errorTable[code].retryable, false, code);
  for (const code of errorCodes)
    if ([429, 503, 504].includes(errorTable[code].status)) assert.equal(errorTable[code].retryable, true, code);
});

test('an error on the wire has its blame, message and details, but not its cause', () => {
  const error = new RolloutError('conflict', 'known: a', { cause: new Error('inside'), details: { ids: ['a'] } });
  const body = toErrorBody(error);
  assert.deepEqual(body, { error: { code: 'conflict', message: 'known: a', blame: 'caller', retryable: false, details: { ids: ['a'] } } });
  assert.deepEqual(errorBody.parse(JSON.parse(JSON.stringify(body))), body);
});

test('blame passes typed errors and attributes all others', async () => {
  const typed = new RolloutError('sandbox-died', 'gone');
  await assert.rejects(
    blame('run-failed', () => Promise.reject(typed)),
    typed,
  );
  await assert.rejects(
    blame('run-failed', () => Promise.reject(new Error('plain'))),
    { code: 'run-failed', message: 'plain', blame: 'task' },
  );
  assert.equal(toRolloutError('a string', 'internal').message, 'a string');
});
