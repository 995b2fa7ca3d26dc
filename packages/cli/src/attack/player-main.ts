// The entry of a process that plays hackers: one order at a time, until its parent is gone. It closes its sandboxes before it ends.

import { once } from 'node:events';
import { messageOf } from '@millrace/protocol';
import { attackTask, type Baseline, findBaseline } from './attack-task.ts';
import { hackers } from './hackers/catalogue.ts';
import { openPlays } from './open-plays.ts';
import type { PlayDeps } from './play.ts';
import { type AttackOrder, type PlayerReport, playerOrder } from './wire.ts';

const beatMs = 500;

process.on('SIGINT', () => {}); // the parent decides what it means
const gone = new AbortController();
process.on('disconnect', () => gone.abort(new Error('the command has ended')));
const [first] = await once(process, 'message');
const opening = playerOrder.parse(first);
if (opening.kind !== 'open') throw new Error('the first order must open the player');
const baselines = new Map<string, Promise<Baseline>>();
await using plays = await openPlays(opening.config, opening.folder);
let playing: Promise<void> | undefined;
setInterval(() => report({ kind: 'beat' }), beatMs).unref();
process.on('message', (message) => {
  const order = playerOrder.parse(message);
  if (order.kind === 'attack') playing = attack(plays.deps, order).then(report);
});
report({ kind: 'ready' });
if (!gone.signal.aborted) await once(gone.signal, 'abort');
await playing; // it closes its sandboxes
await plays[Symbol.asyncDispose]();
process.exit(0);

async function attack(deps: PlayDeps, order: AttackOrder): Promise<PlayerReport> {
  const { signal } = gone;
  const hacker = hackers.find(({ name }) => name === order.hacker);
  if (!hacker) return { kind: 'broken', why: `there is no hacker ${order.hacker}` };
  try {
    const found = baselines.get(order.key) ?? findBaseline(deps, order, signal);
    baselines.set(order.key, found);
    const attacked = await attackTask(deps, order, { hacker, baseline: await found, signal });
    return attacked === undefined ? { kind: 'skipped' } : { kind: 'attacked', ...attacked };
  } catch (error) {
    return { kind: 'broken', why: messageOf(error) };
  }
}

function report(said: PlayerReport): void {
  if (process.connected) process.send?.(said);
}
