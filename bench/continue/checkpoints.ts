// What a checkpoint takes, for a few files and for many, next to a bare tar of the same files in the same sandbox.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '@millrace/base/log';
import { type Checkpoint, openBubblewrapDriver, restoreCheckpoint, type Sandbox, takeCheckpoint } from '@millrace/sandbox';
import type { BenchRow } from '../report/report.ts';

const counts = [10, 1500];
const bytesPerFile = 2000;
const times = 12;
const timeoutMs = 60_000;
const maxBytes = 64 << 20;
const { signal } = new AbortController();

interface CheckpointCost {
  readonly ms: number;
  readonly cpuMs: number;
}

/** `base` is the number of rows before these. */
export async function measureCheckpoints(base: number): Promise<BenchRow[]> {
  const runDir = await mkdtemp(join(tmpdir(), 'bench-'));
  try {
    const driver = await openBubblewrapDriver({ runDir, log: silentLog });
    const rows: BenchRow[] = [];
    for (const count of counts) {
      await using sandbox = await driver.open({});
      await sandbox.runShell(`for i in $(seq ${count}); do head -c ${bytesPerFile} /dev/urandom >file$i; done`, { timeoutMs });
      const folders = driver.writable ?? [];
      const tar = ['bash', '-c', `tar -C / -cf - "\${@#/}" | cat >/dev/null`, 'tar', ...folders];
      let checkpoint: Checkpoint | undefined;
      const [bare, own, restored]: [CheckpointCost[], CheckpointCost[], CheckpointCost[]] = [[], [], []];
      for (let time = 0; time < times; time += 1) {
        bare.push(await measure(sandbox, () => sandbox.exec(tar, { timeoutMs })));
        own.push(
          await measure(sandbox, async () => {
            checkpoint = await takeCheckpoint(sandbox, { folders, maxBytes, signal });
          }),
        );
        await using other = await driver.open({});
        const saved = checkpoint;
        if (saved) restored.push(await measure(other, () => restoreCheckpoint(other, saved, { folders, signal })));
      }
      const at = base + rows.length;
      const bytes = [(checkpoint?.archive.length ?? 0) / 1024];
      rows.push(
        { what: `${count} files: tar, CPU`, unit: 'ms CPU', samples: bare.map(({ cpuMs }) => cpuMs) },
        { what: `${count} files: a checkpoint, CPU`, unit: 'ms CPU', samples: own.map(({ cpuMs }) => cpuMs), against: at },
        { what: `${count} files: tar`, unit: 'ms', samples: bare.map(({ ms }) => ms) },
        { what: `${count} files: a checkpoint`, unit: 'ms', samples: own.map(({ ms }) => ms), against: at + 2 },
        { what: `${count} files: restored in another sandbox`, unit: 'ms', samples: restored.map(({ ms }) => ms), against: at + 2 },
        { what: `${count} files: size of a checkpoint`, unit: 'KiB', samples: bytes },
      );
    }
    return rows;
  } finally {
    await rm(runDir, { recursive: true, force: true });
  }
}

/** With the CPU time of this process and of the sandbox. */
async function measure(sandbox: Sandbox, work: () => Promise<unknown>): Promise<CheckpointCost> {
  const [startMs, cpu, own] = [performance.now(), sandbox.readUse().cpuMs, process.cpuUsage()];
  await work();
  const spent = process.cpuUsage(own);
  return { ms: performance.now() - startMs, cpuMs: sandbox.readUse().cpuMs - cpu + (spent.user + spent.system) / 1000 };
}
