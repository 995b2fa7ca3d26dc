// The gate lets calls through while the policy runs, and notifies when no call is in flight.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PolicyRecord } from '@millrace/store';
import { PolicyGate } from '../../src/inference/policy-gate.ts';

const never = new AbortController().signal;
const running = (changes: Partial<PolicyRecord> = {}) =>
  ({ state: 'running', pause: 0, flushes: 0, policyVersion: 0, ...changes }) as const;
const pausing = (pause: number, mode: 'wait' | 'abort') => ({ state: 'pausing', mode, pause, flushes: 0, policyVersion: 0 }) as const;

test('a gate that has not read the policy is closed', async () => {
  const gate = new PolicyGate();
  assert.equal(gate.enter(), undefined);
  const opened = gate.opened({ signal: never });
  gate.update(running({ policyVersion: 3 }));
  await opened;
  assert.ok(gate.enter());
  assert.equal(gate.policyVersion, 3);
});

test('a pause that waits lets calls end, and notifies after the last one', () => {
  let idles = 0;
  const gate = new PolicyGate({ onIdle: () => idles++ });
  gate.update(running());
  const [a, b] = [gate.enter(), gate.enter()];
  gate.update(pausing(1, 'wait'));
  assert.equal(gate.enter(), undefined);
  assert.deepEqual([gate.report, idles, a?.cut.aborted], [{ pause: 1, generating: 2 }, 0, false]);
  a?.[Symbol.dispose]();
  a?.[Symbol.dispose]();
  assert.equal(idles, 0);
  b?.[Symbol.dispose]();
  assert.deepEqual([gate.report, idles], [{ pause: 1, generating: 0 }, 1]);
});

test('a pause that aborts cuts the calls in flight, also if it waited before', () => {
  const gate = new PolicyGate();
  gate.update(running());
  const pass = gate.enter();
  gate.update(pausing(1, 'wait'));
  gate.update(pausing(1, 'abort'));
  assert.equal(pass?.cut.aborted, true);
  pass?.[Symbol.dispose]();
  gate.update(running({ pause: 1 }));
  assert.equal(gate.enter()?.cut.aborted, false);
});

test('a wait at the gate rejects with the reason of its signal', async () => {
  const gate = new PolicyGate();
  const controller = new AbortController();
  const waiting = gate.opened({ signal: controller.signal });
  controller.abort(new Error('cancelled'));
  await assert.rejects(waiting, /cancelled/);
});

test('a resume followed at once by another pause lets no waiting call through', async () => {
  const gate = new PolicyGate();
  gate.update(pausing(1, 'wait'));
  let isThrough = false;
  const opened = gate.opened({ signal: never }).then(() => {
    isThrough = true;
  });
  gate.update(running({ pause: 1 }));
  gate.update(pausing(2, 'wait'));
  await new Promise(setImmediate);
  assert.equal(isThrough, false);
  gate.update(running({ pause: 2 }));
  await opened;
});
