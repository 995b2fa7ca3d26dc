// 500 harness sessions at once, each with its own gateway and a scripted client: event loop lag of the server and its workers, and turns per
// second, against the same clients at the engine itself.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { openLoopLag } from '@millrace/base/loop-lag';
import { findCgroups } from '@millrace/sandbox';
import { type FakeBackendProcess, openFakeBackendProcess, qwen3Folder, TestService } from '@millrace/testkit';
import { readCpuMs, readPssMiB } from '../report/processes.ts';
import { type BenchReport, percentile } from '../report/report.ts';
import { textTokens } from './text-policy.ts';

const sessions = 500;
const workers = 2;
/** As of a large model that is shared by many, and of an agent whose commands take some seconds. */
const engine = { latencyMs: 200, tokenMs: 40 };
const actMs = 4000;
const seconds = 30;
/** Processes report their lag in windows of about ten seconds; the windows of the start-up do not count. */
const settleMs = 22_000;

export async function runGatewaySessionsBench(): Promise<BenchReport> {
  await findCgroups({ enter: true });
  const policy = new URL('./text-policy.ts', import.meta.url).pathname;
  await using backend = await openFakeBackendProcess({ policy, ...engine });
  const bare = await measureBare(backend);
  const pipeline = { runSlots: sessions / workers + 20, readySlots: 64, initSlots: 16, handBackMs: 0 };
  await using service = await TestService.open({ workers, tokenizer: qwen3Folder(), pipeline });
  await service.client.backends.join({ url: backend.url });
  await using client = await ScriptedClient.open(service.url, backend.url);
  await pause(settleMs);
  const pids = (await service.client.status()).workers.filter(({ alive }) => alive).map(({ pid }) => pid);
  const { lags, rate, fewest, serverCpu, workerCpu } = await measure(service, client, pids);
  const [server, worker, idle] = [percentile(lags.server, 0.99), percentile(lags.worker, 0.99), percentile(lags.idle, 0.99)];
  return {
    title: `${sessions} harness sessions at once through gateways, ${textTokens} tokens a turn, streamed`,
    rows: [
      { what: 'the same clients at the engine itself', unit: 'turns/s', samples: [bare], larger: 'better' },
      { what: 'turns through gateways', unit: 'turns/s', samples: [rate], larger: 'better', against: 0 },
      { what: 'event loop lag, p99 of ten seconds: a process on the same cores that does nothing', unit: 'ms', samples: lags.idle },
      { what: 'event loop lag, p99 of ten seconds: server', unit: 'ms', samples: lags.server, against: 2 },
      { what: 'event loop lag, p99 of ten seconds: workers', unit: 'ms', samples: lags.worker, against: 2 },
      { what: 'CPU of the server for each turn', unit: 'ms', samples: [serverCpu] },
      { what: 'CPU of the workers for each turn', unit: 'ms', samples: [workerCpu] },
      { what: 'memory of the server', unit: 'MiB', samples: [readPssMiB(service.pid)] },
      { what: `memory of a worker with ${sessions / workers} sessions`, unit: 'MiB', samples: pids.map(readPssMiB) },
    ],
    targets: [
      {
        claim: `${sessions} sessions were open throughout (fewest: ${fewest}), and no request failed (${client.failed})`,
        kept: fewest >= sessions && client.failed === 0,
      },
      {
        claim: `event loop lag p99 < 50 ms in server (${server.toFixed(1)} ms) and workers (${worker.toFixed(1)} ms), beyond that of an idle process (${idle.toFixed(1)} ms)`,
        kept: server - idle < 50 && worker - idle < 50,
      },
    ],
    notes: [
      `Each session has an opening of 2,000 words and four tools, adds 100 words in each turn and starts over after 20; its client waits ${actMs / 1000} s on average between turns. The engine takes ${engine.latencyMs} ms to its first token and ${engine.tokenMs} ms for each one. Client and fake engine run on the same cores: what they take is not there for the service.`,
    ],
  };
}

/** The scripted client, in its own process. */
class ScriptedClient implements AsyncDisposable {
  turns = 0;
  failed = 0;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, lines: Interface) {
    this.#child = child;
    lines.on('line', (line) => {
      if (line.startsWith('{')) Object.assign(this, JSON.parse(line));
    });
  }

  /** Resolves when all sessions have begun. */
  static async open(serviceUrl: string, engineUrl: string): Promise<ScriptedClient> {
    const main = new URL('./session-client.ts', import.meta.url).pathname;
    const args = [main, serviceUrl, engineUrl, `${sessions}`, `${actMs}`];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    if (!child.stdout) throw new Error('the client has no standard output');
    const lines = createInterface(child.stdout);
    await once(lines, 'line');
    return new ScriptedClient(child, lines);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }
}

/** Turns per second at the engine itself. */
async function measureBare(backend: FakeBackendProcess): Promise<number> {
  await using client = await ScriptedClient.open('-', backend.url);
  await pause(5000);
  const before = client.turns;
  await pause(15_000);
  return (client.turns - before) / 15;
}

async function measure(service: TestService, client: ScriptedClient, workerPids: readonly number[]) {
  const lags: { server: number[]; worker: number[]; idle: number[] } = { server: [], worker: [], idle: [] };
  using own = openLoopLag();
  const readCpu = () => ({ server: readCpuMs(service.pid), workers: workerPids.reduce((sum, pid) => sum + readCpuMs(pid), 0) });
  let fewest = sessions;
  const [startedAt, before, cpu] = [performance.now(), client.turns, readCpu()];
  for (let second = 0; second < seconds; second += 1) {
    await pause(1000);
    const { loop_lag_ms, workers: all, rollouts } = await service.client.status();
    lags.server.push(loop_lag_ms.p99);
    lags.idle.push(own.read().p99);
    for (const { report } of all) if (report) lags.worker.push(report.loop_lag_ms.p99);
    fewest = Math.min(fewest, rollouts.run);
  }
  const [turns, spent] = [client.turns - before, readCpu()];
  const rate = (turns * 1000) / (performance.now() - startedAt);
  return { lags, fewest, rate, serverCpu: (spent.server - cpu.server) / turns, workerCpu: (spent.workers - cpu.workers) / turns };
}
