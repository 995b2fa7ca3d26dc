// A network of its own for one machine of a test: a network namespace with one link to this host, which can be cut and joined again. Only
// root can make one.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';

/**
 * - down: the machine's interface is down, as when a cable is pulled
 * - replies: what the machine sends arrives, and nothing comes back
 */
type NetworkCut = 'down' | 'replies';

export interface MachineNetwork extends AsyncDisposable {
  /** The address of this host, as the machine sees it. */
  readonly hostAddress: string;
  /** Runs the rest of a command line in the machine's network. */
  readonly enter: readonly string[];
  cut(how: NetworkCut): void;
  /** Undoes every cut. */
  join(): void;
}

/** Why there can be none here; false if there can. */
export const machineNetworkSkip = findSkip();

function findSkip(): string | false {
  if (process.getuid?.() !== 0) return 'only root can make a network namespace';
  const programs = ['ip', 'nsenter', 'unshare'];
  const folders = `${process.env.PATH}:/usr/sbin:/sbin`.split(':');
  const missing = programs.filter((name) => !folders.some((folder) => existsSync(`${folder}/${name}`)));
  return missing.length === 0 ? false : `there is no ${missing.join(', ')}; try: apt-get install iproute2 util-linux`;
}

export async function openMachineNetwork(): Promise<MachineNetwork> {
  const keeper = spawn('unshare', ['--net', 'sh', '-c', 'echo ready; exec sleep infinity'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(keeper, 'exit');
  await Promise.race([once(keeper.stdout, 'data'), ended.then(() => Promise.reject(new Error('unshare --net failed')))]);
  const [here, there] = [`mr${process.pid}h`, `mr${process.pid}m`];
  const subnet = `10.${200 + (process.pid % 50)}.${Math.floor(process.pid / 50) % 256}`;
  const [hostAddress, machineAddress] = [`${subnet}.1`, `${subnet}.2`];
  const enter = ['nsenter', `--net=/proc/${keeper.pid}/ns/net`, '--'];
  const inside = (...values: string[]) => run([...enter, 'ip', ...values]);
  run(['ip', 'link', 'add', here, 'type', 'veth', 'peer', 'name', there, 'netns', String(keeper.pid)]);
  run(['ip', 'address', 'add', `${hostAddress}/30`, 'dev', here]);
  run(['ip', 'link', 'set', here, 'up']);
  inside('address', 'add', `${machineAddress}/30`, 'dev', there);
  inside('link', 'set', 'lo', 'up');
  inside('link', 'set', there, 'up');
  const cuts = new Set<NetworkCut>();
  const hole = ['blackhole', `${machineAddress}/32`];
  const join = () => {
    if (cuts.delete('down')) inside('link', 'set', there, 'up');
    if (cuts.delete('replies')) run(['ip', 'route', 'delete', ...hole]);
  };
  return {
    hostAddress,
    enter,
    join,
    cut(how) {
      if (cuts.has(how)) return;
      cuts.add(how);
      if (how === 'down') inside('link', 'set', there, 'down');
      else run(['ip', 'route', 'add', ...hole]);
    },
    async [Symbol.asyncDispose]() {
      join();
      // The namespace ends with its last process, and the link with it; this does not wait for that.
      run(['ip', 'link', 'delete', here]);
      keeper.kill('SIGKILL');
      await ended;
    },
  };
}

function run([program = '', ...values]: readonly string[]): void {
  execFileSync(program, values, { stdio: ['ignore', 'ignore', 'pipe'] });
}
