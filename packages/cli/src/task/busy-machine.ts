// A busy machine, on purpose: programs that use every core, and a sandbox that uses up its memory and writes to its disk. Everything ends
// when it is closed, and with this process, however that ends.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { messageOf } from '@millrace/protocol';
import type { SandboxDriver } from '@millrace/sandbox';

interface BusyMachine extends AsyncDisposable {
  /** How many programs wait for a core. */
  readonly burners: number;
}

const burnersPerCore = 4;
const memoryMiB = 384;
const diskMiB = 64;

/** Looks at its parent between rounds, so that it cannot outlive it. */
const burn = 'while kill -0 "$0" 2>/dev/null; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; done';

/** Allocates up to the limit of its own sandbox, and writes a file of a bounded size again and again. */
const press = `import os
held, size = [], 1 << 20
while True:
    try:
        held.append(bytearray(os.urandom(1) * size))
    except MemoryError:
        held = []
    if len(held) > ${memoryMiB - 96}: held = held[len(held) // 2:]
    with open('/workspace/pressure', 'wb') as file:
        for _ in range(${diskMiB} // 8): file.write(bytes(size))
        os.fsync(file.fileno())
`;

export async function openBusyMachine(driver: SandboxDriver, signal: AbortSignal): Promise<BusyMachine> {
  await using stack = new AsyncDisposableStack();
  const over = new AbortController();
  const sandbox = stack.use(await driver.open({ limits: { memoryMiB } }, { signal }));
  stack.defer(() => over.abort(new Error('the check has ended')));
  const running = sandbox.exec(['python3', '-c', press], { timeoutMs: 24 * 3600 * 1000, signal: over.signal });
  running.catch((error) => messageOf(error)); // closing it ends the program, and so may its limits
  const burners = Array.from({ length: availableParallelism() * burnersPerCore }, () =>
    spawn('/bin/sh', ['-c', burn, String(process.pid)], { stdio: 'ignore' }),
  );
  stack.defer(async () => void (await Promise.all(burners.map(end))));
  const moved = stack.move();
  return { burners: burners.length, [Symbol.asyncDispose]: () => moved.disposeAsync() };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
