// What an agent is charged for a call into its sandbox.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Deadline } from '@millrace/base/deadline';
import { FakeClock } from '@millrace/testkit/plain';
import { AgentTime } from '../../../src/pipeline/attempt/agent-time.ts';

async function charge({ isBusy, share = 0 }: { isBusy: boolean; share?: number }, seconds: number) {
  const clock = new FakeClock();
  using deadline = new Deadline('run', 100_000, clock);
  const time = new AgentTime(deadline, { timeoutMs: 100_000, clock });
  const readUse = () => ({ cpuMs: share * clock.monotonic(), isBusy, ownOomKills: 0, foreignOomKills: 0 });
  const { promise, resolve } = Promise.withResolvers<void>();
  const call = time.during({ readUse }, () => promise);
  for (let at = 0; at < seconds; at += 1) clock.advance(1000);
  resolve();
  await call;
  clock.advance(5000); // nothing is given back after the call
  return { chargedS: Math.round(deadline.chargedMs / 1000), isOver: deadline.signal.aborted };
}

test('a command that sleeps, or has its core, is charged in full', async () => {
  assert.deepEqual(await charge({ isBusy: false }, 60), { chargedS: 65, isOver: false });
  const { chargedS } = await charge({ isBusy: true, share: 1 }, 60);
  assert.ok(chargedS >= 63, `${chargedS} s`);
});

test('a command that gets a tenth of a core is charged a tenth, and no agent lives forever', async () => {
  const { chargedS, isOver } = await charge({ isBusy: true, share: 0.1 }, 300);
  assert.ok(chargedS < 45 && !isOver, `${chargedS} s`);
  assert.equal((await charge({ isBusy: true, share: 0 }, 1200)).isOver, true);
});
