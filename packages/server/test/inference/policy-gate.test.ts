// The gate lets calls through while the policy runs, and says when nothing is under way any more.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PolicyGate, type PolicyRecord } from '../../src/inference/policy-gate.ts';

const never = new AbortController().signal;
const running = (changes: Partial<PolicyRecord> = {}) =>
  ({ state: 'running', pause: 0, flushes: 0, policyVersion: 0, ...changes }) as const;
const pausing = (pause: number, mode: 'wait' | 'abort') => ({ state: 'pausing', mode, pause, flushes: 0, policyVersion: 0 }) as const;

test('a gate that was told nothing is closed', async () => {
  const gate = new PolicyGate();
  assert.equal(gate.enter(), undefined);
  const opened = gate.opened({ signal: never });
  gate.tell(running({ policyVersion: 3 }));
  await opened;
  assert.ok(gate.enter());
  assert.equal(gate.policyVersion, 3);
});

test('a pause that waits lets calls end, and says so when the last has', () => {
  let stills = 0;
  const gate = new PolicyGate({ onStill: () => stills++ });
  gate.tell(running());
  const [a, b] = [gate.enter(), gate.enter()];
  gate.tell(pausing(1, 'wait'));
  assert.equal(gate.enter(), undefined);
  assert.deepEqual([gate.report, stills, a?.cut.aborted], [{ pause: 1, generating: 2 }, 0, false]);
  a?.[Symbol.dispose]();
  a?.[Symbol.dispose]();
  assert.equal(stills, 0);
  b?.[Symbol.dispose]();
  assert.deepEqual([gate.report, stills], [{ pause: 1, generating: 0 }, 1]);
});

test('a pause that aborts cuts what is under way, also when it waited before', () => {
  const gate = new PolicyGate();
  gate.tell(running());
  const pass = gate.enter();
  gate.tell(pausing(1, 'wait'));
  gate.tell(pausing(1, 'abort'));
  assert.equal(pass?.cut.aborted, true);
  pass?.[Symbol.dispose]();
  gate.tell(running({ pause: 1 }));
  assert.equal(gate.enter()?.cut.aborted, false);
});

test('whoever waits at the gate leaves with the reason of its signal', async () => {
  const gate = new PolicyGate();
  const controller = new AbortController();
  const waiting = gate.opened({ signal: controller.signal });
  controller.abort(new Error('cancelled'));
  await assert.rejects(waiting, /cancelled/);
});

test('a resume that is taken back before anyone moved opens nothing', async () => {
  const gate = new PolicyGate();
  gate.tell(pausing(1, 'wait'));
  let isThrough = false;
  const opened = gate.opened({ signal: never }).then(() => {
    isThrough = true;
  });
  gate.tell(running({ pause: 1 }));
  gate.tell(pausing(2, 'wait'));
  await new Promise(setImmediate);
  assert.equal(isThrough, false);
  gate.tell(running({ pause: 2 }));
  await opened;
});
