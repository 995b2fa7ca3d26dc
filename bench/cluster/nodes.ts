// Rollouts per second on 1, 2, 4 and 8 nodes that share one PostgreSQL: each node is a `millrace worker --join` of its own, and each rollout
// runs its turns in a real sandbox. Backends take a fixed time for each turn, so that the cores of one machine can carry all nodes.

import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@millrace/client';
import { openFakeBackendProcess, PostgresServer, qwen3Folder, readPastEvents, TestMachine, TestService } from '@millrace/testkit';
import type { BenchReport } from '../report/report.ts';

export interface NodesSizes {
  readonly counts: readonly number[];
  readonly settleMs: number;
  readonly windowMs: number;
}

const fullSizes: NodesSizes = { counts: [1, 2, 4, 8], settleMs: 9_000, windowMs: 24_000 };
const slots = 4;
const turns = 15;
/** A turn of a small model on a GPU. Shorter ones need more than two cores for eight nodes, and then the bench measures those. */
const latencyMs = 800;
/** Rollouts that wait, for each node: new ones are submitted while there are fewer. */
const line = 4 * slots;
/** Of linear, on the most nodes. */
const wanted = 0.9;

interface NodesMeasurement {
  readonly nodes: number;
  readonly rolloutsPerSecond: number;
  /** Of all cores of this machine, all processes together. */
  readonly cpuShare: number;
}

export async function runNodesBench({ counts, settleMs, windowMs } = fullSizes): Promise<BenchReport> {
  await using stack = new AsyncDisposableStack();
  const database = stack.use(await PostgresServer.open({ isDurable: true }));
  const backend = stack.use(await openFakeBackendProcess({ policy: 'fixed', turns, tokensPerTurn: 64, latencyMs }));
  const service = stack.use(
    await TestService.open({
      workers: 0,
      tokenizer: qwen3Folder(),
      pipeline: { initSlots: 2, readySlots: 2, runSlots: slots, evaluateSlots: slots, handBackMs: 0 },
      store: { address: await database.makeAddress() },
    }),
  );
  await service.client.backends.join({ url: backend.url });
  const stop = stack.adopt(new AbortController(), (controller) => controller.abort());
  const feeding = keepFed(service.client, { waiting: line * Math.max(...counts), signal: stop.signal });
  const measured: NodesMeasurement[] = [];
  const started: TestMachine[] = [];
  for (const nodes of counts) {
    const more = Array.from({ length: nodes - started.length }, (_, index) => `node-${started.length + index + 1}`);
    started.push(...(await Promise.all(more.map(async (name) => stack.use(await openNode(service, name))))));
    await pause(settleMs);
    measured.push(await measure(service.client, { nodes, windowMs }));
  }
  stop.abort();
  await feeding;
  return toReport(measured);
}

function openNode({ url }: TestService, name: string): Promise<TestMachine> {
  return TestMachine.open({ url, name, workers: 1 });
}

/** There is always something to claim, and never much more. */
async function keepFed(client: Client, { waiting, signal }: { readonly waiting: number; readonly signal: AbortSignal }): Promise<void> {
  const submission = { scenario: 'shell', task: { instruction: 'Go.', check: 'true' }, limits: { max_turns: turns } };
  while (!signal.aborted) {
    const { rollouts } = await client.status();
    const missing = waiting - rollouts.queued;
    if (missing > 0) await client.submit(Array.from({ length: missing }, () => submission));
    await pause(500);
  }
}

/** By turns, of which every rollout has the same number: the window holds many more of them. */
async function measure(
  client: Client,
  { nodes, windowMs }: { readonly nodes: number; readonly windowMs: number },
): Promise<NodesMeasurement> {
  const { last_event_id: after } = await client.status();
  const cpu = readCpu();
  await pause(windowMs);
  const [busy, all] = readCpu().map((now, index) => now - (cpu[index] ?? 0));
  const times = (await readPastEvents(client, 'turn-end', { after })).map(({ at }) => Date.parse(at));
  const seconds = (Math.max(...times) - Math.min(...times)) / 1000;
  return { nodes, rolloutsPerSecond: (times.length - 1) / seconds / turns, cpuShare: (busy ?? 0) / (all ?? 1) };
}

/** Time that was used, and all time. */
function readCpu(): [number, number] {
  const [, ...fields] = readFileSync('/proc/stat', 'utf8').split('\n')[0]?.split(/\s+/) ?? [];
  const times = fields.slice(0, 8).map(Number);
  const all = times.reduce((sum, one) => sum + one, 0);
  return [all - (times[3] ?? 0) - (times[4] ?? 0), all];
}

function toReport(measured: readonly NodesMeasurement[]): BenchReport {
  const [one] = measured;
  const most = measured.at(-1);
  const share = (most?.rolloutsPerSecond ?? 0) / (one?.rolloutsPerSecond ?? 1) / (most?.nodes ?? 1);
  const alone = (slots * 1000) / (turns * latencyMs);
  const unit = 'rollouts/s';
  return {
    title: `Nodes: ${slots} rollouts at a time on each, in sandboxes, ${turns} turns of ${latencyMs} ms, one PostgreSQL`,
    rows: [
      ...measured.map(({ nodes, rolloutsPerSecond }, index) => ({
        what: `${nodes} ${nodes === 1 ? 'node' : 'nodes'}`,
        unit,
        samples: [rolloutsPerSecond],
        larger: 'better' as const,
        ...(index > 0 && { against: 0 }),
      })),
      { what: 'one node, if only the backend took time', unit, samples: [alone], larger: 'better' },
    ],
    targets: [
      {
        claim: `${most?.nodes} nodes reach at least ${100 * wanted} % of linear (${(100 * share).toFixed(1)} %)`,
        kept: share >= wanted,
      },
    ],
    notes: [
      `All nodes, the server, PostgreSQL and the backend share the cores of this machine, which were busy for ${measured
        .map(({ nodes, cpuShare }) => `${Math.round(100 * cpuShare)} % of the time with ${nodes}`)
        .join(', ')}.`,
    ],
  };
}
