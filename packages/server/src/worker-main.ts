// The entry of a worker process that a server started. Its configuration is the first message. On SIGTERM it finishes what runs; on a
// second SIGTERM, or when its server is gone, it hands back what it holds. It reports over the channel why it stops, without a stack
// trace on the terminal.

import { once } from 'node:events';
import { backgroundClock } from '@millrace/base/clock';
import { messageOf } from '@millrace/protocol';
import { openWorker, type RunningWorker, StartError } from './service.ts';
import { openProcessLog } from './text-log.ts';
import { cannotStartCode, toPulseMs, type WorkerMessage, workerOrder } from './worker-channel.ts';

// A Ctrl-C reaches every process of the terminal; the server decides what it means.
process.on('SIGINT', () => {});
const [message] = await once(process, 'message');
const { config, logFormat, launch, key } = workerOrder.parse(message);
const log = openProcessLog(logFormat, 'worker');
process.on('uncaughtException', (error) => void stop(error, 1));

const serverGone = once(process, 'disconnect');
let terms = 0;
const drained = new Promise<'drain'>((resolve) => {
  process.on('SIGTERM', () => {
    terms += 1;
    if (terms > 1) running?.worker.handBackNow();
    resolve('drain');
  });
});

const running = await open();
await report({ kind: 'ready', model: running.model });
beat();
const why = await Promise.race([drained, serverGone.then(() => 'gone')]);
if (why === 'gone' || terms > 1) running.worker.handBackNow();
else void serverGone.then(() => running.worker.handBackNow());
await running[Symbol.asyncDispose]();
process.exit(0);

async function open(): Promise<RunningWorker> {
  try {
    return await openWorker(config, { log, launch, key });
  } catch (error) {
    return await stop(error, error instanceof StartError ? cannotStartCode : 1);
  }
}

async function stop(error: unknown, code: number): Promise<never> {
  const stack = error instanceof Error && code === 1 ? { stack: error.stack } : {};
  if (process.connected) await report({ kind: 'stopped', reason: messageOf(error), ...stack });
  else log.error('worker-crash', { error: messageOf(error), ...stack });
  process.exit(code);
}

/** A worker without a pulse is replaced: a scenario blocks its event loop. */
function beat(): void {
  backgroundClock.after(toPulseMs(config.pipeline), () => void report({ kind: 'pulse' }).then(beat));
}

async function report(said: WorkerMessage): Promise<void> {
  await new Promise<void>((done) => {
    if (!process.connected) return done();
    process.send?.(said, undefined, undefined, () => done()); // a server that is gone shows as a disconnect
  });
}
