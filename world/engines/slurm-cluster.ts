// A real Slurm on this machine: munged, slurmctld and one slurmd for each node, with their own configuration, key and ports in a temporary
// folder. Only root can start it; jobs and commands run as an ordinary user.

import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, chown, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { findOnPath } from '@millrace/base/find-on-path';
import { chooseFreePort } from '@millrace/base/free-port';
import { makeTempFolder, type TempFolder } from '@millrace/testkit';

const userId = 65534;
const repository = resolve(import.meta.dirname, '../..');
const asUser = ['setpriv', `--reuid=${userId}`, `--regid=${userId}`, '--clear-groups'];
const programs = ['sbatch', 'slurmctld', 'slurmd', 'munged'];

/** Why there can be no cluster here; false if there can. As root, installs Debian's packages first where they are missing. */
export function findSlurmSkip(): string | false {
  if (userInfo().uid !== 0) return 'only root can start slurmd for another user';
  const isThere = () => programs.every((name) => findOnPath([name], `${process.env.PATH}:/usr/sbin`) !== undefined);
  if (isThere()) return false;
  const packages = ['slurm-wlm', 'slurm-client', 'munge'];
  try {
    execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], { stdio: 'ignore' });
  } catch {
    return `there is no Slurm; try: apt-get install ${packages.join(' ')}`;
  }
  return isThere() ? false : `apt-get installed ${packages.join(' ')}, but there is no slurmctld`;
}

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export class SlurmCluster implements AsyncDisposable {
  /** The home of the user, which all nodes see. */
  readonly home: string;
  /** The repository as the user sees it. */
  readonly repository: string;
  readonly #temp: TempFolder;
  readonly #daemons = new Map<string, ChildProcess>();

  private constructor(temp: TempFolder) {
    this.#temp = temp;
    this.home = join(temp.path, 'home');
    this.repository = join(temp.path, 'repository');
  }

  static async open({ nodes, cpus }: { readonly nodes: number; readonly cpus: number }): Promise<SlurmCluster> {
    const cluster = new SlurmCluster(await makeTempFolder('slurm'));
    try {
      await cluster.#start(nodes, cpus);
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Runs a command as the user, as on a login node. */
  async run(command: readonly string[], timeoutMs = 300_000): Promise<CommandResult> {
    const argv = this.#enter([...asUser, ...command]);
    const options = { env: this.#env(), cwd: this.home, timeout: timeoutMs, killSignal: 'SIGKILL' as const, maxBuffer: 1 << 26 };
    try {
      return { code: 0, ...(await promisify(execFile)(argv[0] ?? '', argv.slice(1), options)) };
    } catch (error) {
      const { code, stdout = '', stderr = '' } = error as { code?: number; stdout?: string; stderr?: string };
      return { code: typeof code === 'number' ? code : 1, stdout, stderr };
    }
  }

  /** Starts a command as the user, to be interrupted later with Ctrl-C. */
  start(command: readonly string[]): { interrupt(): Promise<CommandResult> } {
    const argv = this.#enter([...asUser, ...command]);
    const child = spawn(argv[0] ?? '', argv.slice(1), { env: this.#env(), cwd: this.home, stdio: ['ignore', 'pipe', 'pipe'] });
    const [stdout, stderr, exited] = [text(child.stdout), text(child.stderr), once(child, 'exit')];
    return {
      async interrupt() {
        child.kill('SIGINT');
        const [code]: unknown[] = await exited;
        return { code: typeof code === 'number' ? code : 1, stdout: await stdout, stderr: await stderr };
      },
    };
  }

  /** The machine dies: its slurmd, its steps and every process of its jobs, all at once and without a word. */
  async killNode(node: string): Promise<void> {
    const pids = await this.#pidsOf(node);
    for (const pid of [this.#daemons.get(node)?.pid ?? 0, ...pids]) killProcess(pid);
    this.#daemons.delete(node);
  }

  /** Live processes of the user that belong to jobs of this cluster. */
  async jobProcesses(): Promise<string[]> {
    return (await this.#listProcesses()).map(({ pid, command }) => `${pid} ${command}`);
  }

  async log(): Promise<string> {
    return await readFile(join(this.#temp.path, 'slurmctld.log'), 'utf8').catch(() => '');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { pid } of await this.#listProcesses()) killProcess(pid);
    for (const child of [...this.#daemons.values()].reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await rm(this.#temp.path, { recursive: true, force: true });
  }

  async #start(nodes: number, cpus: number): Promise<void> {
    const folder = this.#temp.path;
    await chmod(folder, 0o755);
    for (const name of ['repository', 'state', 'munge', 'home']) await mkdir(join(folder, name));
    await chown(this.home, userId, userId);
    await chmod(join(folder, 'munge'), 0o755);
    await writeFile(join(folder, 'munge/key'), randomBytes(1024), { mode: 0o400 });
    const names = Array.from({ length: nodes }, (_, index) => `n${index + 1}`);
    await writeFile(join(folder, 'slurm.conf'), await this.#renderConfig(names, cpus));
    // In a mount namespace where the user sees the repository, which may be in a folder that only root can enter.
    const bind = 'mount --bind "$1" "$2" && echo ready && exec sleep infinity';
    const keeper = spawn('unshare', ['--mount', '--propagation', 'private', 'bash', '-c', bind, 'bash', repository, this.repository], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#daemons.set('namespace', keeper);
    await once(keeper.stdout, 'data');
    this.#spawn('munged', ['munged', '--foreground', '--force', ...this.#mungeFlags()]);
    await this.#until(async () => (await this.run(['munge', '-n', '-S', join(folder, 'munge/socket')])).code === 0, 'munged');
    this.#spawn('slurmctld', ['slurmctld', '-D', '-c', '-f', this.#conf]);
    for (const name of names) {
      await mkdir(join(folder, `spool-${name}`));
      this.#spawn(name, ['slurmd', '-D', '-f', this.#conf, '-N', name]);
    }
    const idle = async () => (await this.run(['sinfo', '-h', '-N', '-t', 'idle', '-o', '%N'])).stdout.trim().split('\n').length === nodes;
    await this.#until(idle, 'slurmctld');
  }

  get #conf(): string {
    return join(this.#temp.path, 'slurm.conf');
  }

  #mungeFlags(): string[] {
    const at = (name: string) => join(this.#temp.path, 'munge', name);
    return [
      `--key-file=${at('key')}`,
      `--socket=${at('socket')}`,
      `--pid-file=${at('pid')}`,
      `--log-file=${at('log')}`,
      `--seed-file=${at('seed')}`,
    ];
  }

  async #renderConfig(names: readonly string[], cpus: number): Promise<string> {
    const folder = this.#temp.path;
    const host = hostname().split('.')[0];
    const ports = new Set<number>();
    while (ports.size <= names.length) ports.add(await chooseFreePort('127.0.0.1'));
    const [control, ...nodePorts] = [...ports];
    return [
      'ClusterName=world',
      `SlurmctldHost=${host}(127.0.0.1)`,
      'SlurmUser=root',
      'SlurmdUser=root',
      'AuthType=auth/munge',
      // A job that goes back into the queue waits until the credentials of its first run have expired.
      `AuthInfo=socket=${join(folder, 'munge/socket')},cred_expire=5`,
      'CredType=cred/munge',
      `SlurmctldPort=${control}`,
      `StateSaveLocation=${join(folder, 'state')}`,
      `SlurmdSpoolDir=${folder}/spool-%n`,
      `SlurmctldPidFile=${folder}/slurmctld.pid`,
      `SlurmdPidFile=${folder}/slurmd.%n.pid`,
      `SlurmctldLogFile=${folder}/slurmctld.log`,
      `SlurmdLogFile=${folder}/slurmd.%n.log`,
      'ProctrackType=proctrack/linuxproc',
      'TaskPlugin=task/none',
      'JobAcctGatherType=jobacct_gather/none',
      'AccountingStorageType=accounting_storage/none',
      'SelectType=select/cons_tres',
      'SelectTypeParameters=CR_Core',
      'SchedulerType=sched/backfill',
      'SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=2',
      'PropagateResourceLimits=NONE',
      'ReturnToService=2',
      'SlurmdParameters=config_overrides',
      'MpiDefault=none',
      'SlurmdTimeout=10',
      'KillWait=5',
      ...names.map(
        (name, index) => `NodeName=${name} NodeHostname=${host} NodeAddr=127.0.0.1 Port=${nodePorts[index]} CPUs=${cpus} State=UNKNOWN`,
      ),
      `PartitionName=main Nodes=${names.join(',')} Default=YES MaxTime=INFINITE State=UP`,
      '',
    ].join('\n');
  }

  #spawn(name: string, command: readonly string[]): void {
    const argv = this.#enter(command);
    this.#daemons.set(name, spawn(argv[0] ?? '', argv.slice(1), { env: this.#env(), stdio: 'ignore' }));
  }

  #enter(command: readonly string[]): string[] {
    const pid = this.#daemons.get('namespace')?.pid;
    return ['nsenter', `--mount=/proc/${pid}/ns/mnt`, `--wdns=${this.home}`, '--', ...command];
  }

  #env(): Record<string, string> {
    const node = join(this.repository, 'node_modules/.bin');
    return {
      PATH: `${node}:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin`,
      HOME: this.home,
      TMPDIR: '/tmp',
      LANG: 'C.UTF-8',
      SLURM_CONF: this.#conf,
    };
  }

  async #until(isThere: () => Promise<boolean>, what: string): Promise<void> {
    for (let tries = 0; tries < 300; tries += 1) {
      if (await isThere()) return;
      await pause(100);
    }
    throw new Error(`${what} did not start: ${await this.log()}`);
  }

  /** Slurm's own process of a step first: it must not report the end of the others. */
  async #pidsOf(node: string): Promise<number[]> {
    const own = (await this.#listProcesses()).filter((one) => one.node === node);
    const steps = await Promise.all(
      own.map(async ({ parent }) => ((await readProcess(parent))?.command.startsWith('slurmstepd') ? [parent] : [])),
    );
    return [...new Set([...steps.flat(), ...own.map(({ pid }) => pid)])];
  }

  /** Processes of jobs, by the environment that Slurm gives them, and their children, whatever environment those have. */
  async #listProcesses(): Promise<{ pid: number; parent: number; node: string; command: string }[]> {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
    const seen = await Promise.all(pids.map((pid) => readProcess(pid)));
    const alive = seen.flatMap((one) => (one === undefined ? [] : [one]));
    const byPid = new Map(alive.map((one) => [one.pid, one]));
    const nodeOf = (one: ProcessSeen, depth = 0): string | undefined => {
      if (one.conf === this.#conf && one.node !== undefined) return one.node;
      const parent = byPid.get(one.parent);
      return parent === undefined || depth > 20 ? undefined : nodeOf(parent, depth + 1);
    };
    return alive.flatMap((one) => {
      const node = nodeOf(one);
      return node === undefined ? [] : [{ pid: one.pid, parent: one.parent, node, command: one.command }];
    });
  }
}

interface ProcessSeen {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
  readonly conf: string | undefined;
  readonly node: string | undefined;
}

async function readProcess(pid: number): Promise<ProcessSeen | undefined> {
  try {
    const [environ, command, stat] = await Promise.all(
      ['environ', 'cmdline', 'stat'].map((name) => readFile(`/proc/${pid}/${name}`, 'utf8')),
    );
    const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? [];
    if (fields[0] === 'Z') return undefined;
    const variable = (name: string) => new RegExp(`(?:^|\0)${name}=([^\0]*)`).exec(environ ?? '')?.[1];
    return {
      pid,
      parent: Number(fields[1]),
      command: (command ?? '').replaceAll('\0', ' ').slice(0, 200),
      conf: variable('SLURM_CONF'),
      node: variable('SLURMD_NODENAME'),
    };
  } catch {
    return undefined; // it ended while we looked
  }
}

function killProcess(pid: number): void {
  try {
    if (pid > 0) process.kill(pid, 'SIGKILL');
  } catch {
    // already gone: that is what we wanted
  }
}
