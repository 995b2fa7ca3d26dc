// A process of simulated machines, so that the simulation can use more than one core. Its parent says how many machines there are, and when
// to begin and to end a measurement.

import { CallTimes, type SimulatedLoad, SimulatedMachine } from './simulated-machine.ts';

export type MachinesOrder =
  | { readonly kind: 'open'; readonly servers: readonly string[]; readonly load: SimulatedLoad; readonly names: readonly string[] }
  | { readonly kind: 'rest' | 'start' | 'measure' | 'read' };

export interface MachinesAnswer {
  readonly ms: CallTimes['ms'];
  readonly turnsWritten: number;
  readonly leasesEnded: number;
  readonly failed: number;
  /** Of this process, since the last answer. */
  readonly cpuMs: number;
}

/** Each claims all that it holds. */
const openedTogether = 8;

if (import.meta.main) {
  let times = new CallTimes();
  let cpu = process.cpuUsage();
  const machines: SimulatedMachine[] = [];
  const follow = async (order: MachinesOrder) => {
    if (order.kind === 'open') await openAll(order);
    if (order.kind === 'rest') await Promise.all(machines.map((machine) => machine.rest()));
    if (order.kind === 'start') for (const machine of machines) machine.start();
    if (order.kind === 'measure') {
      times = new CallTimes();
      cpu = process.cpuUsage();
    }
    const { user, system } = process.cpuUsage(cpu);
    const { ms, turnsWritten, leasesEnded, failed } = times;
    process.send?.({ ms, turnsWritten, leasesEnded, failed, cpuMs: (user + system) / 1000 } satisfies MachinesAnswer);
  };
  const openAll = async ({ servers, load, names }: MachinesOrder & { kind: 'open' }) => {
    const left = [...names];
    const openSome = async () => {
      for (let name = left.shift(); name !== undefined; name = left.shift())
        machines.push(await SimulatedMachine.open(servers, name, { load, times: () => times }));
    };
    await Promise.all(Array.from({ length: openedTogether }, openSome));
  };
  process.on('message', (order: MachinesOrder) => void follow(order));
  process.once('disconnect', () => process.exit());
}
