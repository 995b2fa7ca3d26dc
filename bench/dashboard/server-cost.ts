// The server's CPU time with and without open pages, while rollouts run: windows of both kinds in turns, so that load and warming up are
// the same for both.

import { setTimeout as sleep } from 'node:timers/promises';
import { openFakeBackend, qwen3Folder, TestService } from '@millrace/testkit';
import { readCpuMs } from '../report/processes.ts';

const pages = 20;
const windowMs = 6000;
const windows = 4;

interface ServerCost {
  readonly pages: number;
  readonly perS: number;
  /** Percent of a core in each window. */
  readonly closed: readonly number[];
  readonly open: readonly number[];
}

export async function measureServer(): Promise<ServerCost> {
  await using backend = await openFakeBackend({ policy: () => ({ text: 'The answer is \\boxed{4}.' }), latencyMs: 500 });
  await using service = await TestService.open({
    workers: 1,
    tokenizer: qwen3Folder(),
    pipeline: { initSlots: 2, runSlots: 4, evaluateSlots: 2 },
  });
  const { client, url, pid } = service;
  await client.backends.join({ id: 'gpu-0', url: backend.url, policy_version: 1 });
  const total = Math.ceil((2 * windows * windowMs) / 1000) * 9 + 60;
  const tasks = Array.from({ length: total }, (_, number) => ({
    id: `r-${number}`,
    scenario: 'math',
    task: { question: `What is 2 + ${number}?`, answer: '4' },
  }));
  await client.submit(tasks);
  const began = performance.now();
  const [closed, open]: [number[], number[]] = [[], []];
  for (let window = 0; window < windows; window++) {
    closed.push(await measure(pid, []));
    open.push(
      await measure(
        pid,
        Array.from({ length: pages }, (_, index) => (signal: AbortSignal) => openPage(url, { index, signal })),
      ),
    );
  }
  const seconds = (performance.now() - began) / 1000;
  const { rollouts } = await client.status();
  return { pages, perS: (rollouts.done + rollouts.failed) / seconds, closed, open };
}

async function measure(pid: number, opened: readonly ((signal: AbortSignal) => Promise<void>)[]): Promise<number> {
  const stop = new AbortController();
  const running = opened.map((run) => run(stop.signal));
  await sleep(1500); // opening is not part of it
  const [at, before] = [performance.now(), readCpuMs(pid)];
  await sleep(windowMs);
  const percent = (100 * (readCpuMs(pid) - before)) / (performance.now() - at);
  stop.abort();
  await Promise.all(running);
  return percent;
}

/** The requests of one page: every second one shows the list of rollouts, the others what happens now. */
async function openPage(url: string, { index, signal }: { readonly index: number; readonly signal: AbortSignal }): Promise<void> {
  const read = async (path: string) => {
    const reply = await fetch(new URL(path, url), { signal });
    await reply.arrayBuffer();
  };
  const stream = async () => {
    const { body } = await fetch(new URL('/dashboard/api/live', url), { signal });
    for await (const _ of body ?? []);
  };
  const repeat = async (path: string, everyMs: number) => {
    for (;;) {
      await read(path);
      await sleep(everyMs, undefined, { signal });
    }
  };
  const list = '/dashboard/api/rollouts?sort=created&order=desc&offset=0&limit=200';
  const own = index % 2 === 0 ? [repeat(list, 2000)] : [repeat('/dashboard/api/summary', 5000)];
  await Promise.allSettled([stream(), repeat('/v1/status', 1000), ...own]); // all end by the signal
}
