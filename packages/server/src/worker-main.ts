// The entry of a worker process that a server started: its configuration comes as the first message, and when the channel to
// its parent breaks it hands back what it holds and leaves.

import { once } from 'node:events';
import { serviceConfig } from './config.ts';
import { openWorker } from './service.ts';

// A Ctrl-C in the terminal reaches the whole group; the parent decides what it means.
process.on('SIGINT', () => {});
const [message] = await once(process, 'message');
const config = serviceConfig.parse(message);
const parentGone = once(process, 'disconnect');
const asked = once(process, 'SIGTERM');
const running = await openWorker(config);
const graceful = await Promise.race([asked.then(() => true), parentGone.then(() => false)]);
if (graceful) void parentGone.then(() => running.worker.handBackNow());
else running.worker.handBackNow();
await running[Symbol.asyncDispose]();
process.exit(0);
