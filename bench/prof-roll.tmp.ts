import { openFakeBackendProcess, qwen3Folder, TestService } from '@millrace/testkit';
import { readSpentCpu } from './report/processes.ts';
const n = Number(process.argv[2] ?? 120);
const env = process.env.PROF ? { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${process.env.PROF}` } : {};
await using backend = await openFakeBackendProcess({ policy: 'fixed', turns: 3, tokensPerTurn: 32, latencyMs: 20 });
const pipeline = { runSlots: 12, readySlots: 6, initSlots: 4, handBackMs: 0 };
const service = await TestService.open({ workers: 1, tokenizer: qwen3Folder(), pipeline, env });
await service.client.backends.join({ url: backend.url });
const { workers } = await service.client.status();
const w = workers.filter((x) => x.alive).map((x) => x.pid)[0]!;
const go = async (k: number) => { const run = await service.client.run(Array.from({ length: k }, () => ({ scenario: 'shell', task: { instruction: 'Go.', check: 'true' } }) as never)); for await (const v of run) if (v.state !== 'done') throw new Error(JSON.stringify(v.failure)); };
await go(60);
for (let r = 0; r < Number(process.argv[3] ?? 1); r++) {
const hr = () => Number(process.hrtime.bigint() / 1000n);
const a = [readSpentCpu(w), readSpentCpu(service.pid)], t = hr();
await go(n);
const b = [readSpentCpu(w), readSpentCpu(service.pid)];
const d = (i: number, f: 'ownMs' | 'childrenMs' | 'kernelMs') => ((b[i]![f] - a[i]![f]) / n).toFixed(2);
console.log(JSON.stringify({ worker: d(0, 'ownMs'), sandboxes: d(0, 'childrenMs'), kernelOfBoth: d(0, 'kernelMs'), server: d(1, 'ownMs'), perSecond: (n / (hr() - t) * 1e6).toFixed(1) }));
console.log('WINDOW', t, hr());
}
await service.stop();
process.exit(0);
