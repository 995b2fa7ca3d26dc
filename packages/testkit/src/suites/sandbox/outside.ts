// The sandbox suite: what a sandbox is on the machine outside: the user of its processes, and what a cancelled start leaves behind.

import assert from 'node:assert/strict';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { test } from 'node:test';
import { sleep } from '@millrace/base/clock';
import { readCommandLines } from '../../plain/command-lines.ts';
import { type SuiteContext, timeoutMs } from './context.ts';

export function defineOutside({ driver, hostUid, isPooled }: SuiteContext): void {
  test('the processes of an agent belong to the expected user of this machine', async () => {
    await using sandbox = await driver().open({});
    const mark = `millrace-user-${process.pid}`;
    await sandbox.runShell(`bash -c 'exec -a ${mark} sleep 1000' &`, { timeoutMs });
    assert.deepEqual(await findUsers(mark), hostUid === undefined ? [process.getuid?.()] : [hostUid]);
  });

  if (isPooled) return; // the sandboxes in its reserve have sockets too

  test('opens that are cancelled at any moment leave no socket in the worker', async () => {
    const startMs = performance.now();
    await (await driver().open({}))[Symbol.asyncDispose]();
    const openMs = performance.now() - startMs;
    const before = await countSockets();
    for (let step = 0; step < 20; step += 1) {
      const cancel = new AbortController();
      const timer = setTimeout(() => cancel.abort(new Error('no longer wanted')), (openMs * step) / 20);
      const opened = await driver()
        .open({}, { signal: cancel.signal })
        .catch(() => undefined);
      clearTimeout(timer);
      await opened?.[Symbol.asyncDispose]();
    }
    for (let tries = 0; tries < 100 && (await countSockets()) > before; tries += 1) await sleep(20);
    assert.ok((await countSockets()) <= before, `${before} sockets before, ${await countSockets()} after`);
  });
}

/** The real user ids of processes whose name starts with the mark; there is no event for the moment when it gets its name. */
async function findUsers(mark: string): Promise<(number | undefined)[]> {
  for (let tries = 0; tries < 200; tries += 1) {
    const found = (await readCommandLines()).filter(({ text }) => text.startsWith(mark));
    const readStatus = (pid: number) => readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''); // it has ended
    if (found.length > 0)
      return Promise.all(found.map(async ({ pid }) => Number(/^Uid:\t(\d+)/m.exec(await readStatus(pid))?.[1] ?? Number.NaN)));
    await sleep(10);
  }
  return [];
}

async function countSockets(): Promise<number> {
  const links = await Promise.all((await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')));
  return links.filter((link) => link.startsWith('socket:')).length;
}
