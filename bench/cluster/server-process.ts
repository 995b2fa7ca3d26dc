// A server of the simulated machines, in its own process: a real one, with everything that a server does. Its parent gives it the
// address of the store, and asks how much of a processor it used.

import { openServer, readConfig } from '@millrace/server';
import { silentLog } from '../../packages/base/src/log.ts';

export type SimulationOrder = { readonly kind: 'open'; readonly address: string; readonly leaseMs: number } | { readonly kind: 'cpu' };
/** Where it listens; or milliseconds since the last time. */
export type SimulationAnswer = { readonly url: string } | { readonly cpuMs: number };

if (import.meta.main) {
  let cpu = process.cpuUsage();
  const answer = (said: SimulationAnswer) => process.send?.(said);
  process.on('message', (order: SimulationOrder) => {
    if (order.kind === 'open') return void open(order).then((url) => answer({ url }));
    const { user, system } = process.cpuUsage(cpu);
    cpu = process.cpuUsage();
    answer({ cpuMs: (user + system) / 1000 });
  });
  process.once('disconnect', () => process.exit());
}

async function open({ address, leaseMs }: SimulationOrder & { kind: 'open' }): Promise<string> {
  const config = readConfig(undefined, { 'store.address': address, 'http.port': 0, 'pipeline.leaseMs': leaseMs, 'pipeline.maxLosses': 10 });
  return await (await openServer(config, { log: silentLog })).listen();
}
