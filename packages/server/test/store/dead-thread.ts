// A server process, for a test: once it answers, it stops one of its store's threads.

import { setTimeout } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { serviceConfig } from '../../src/config.ts';
import { openServer } from '../../src/service.ts';

const [data = '', role = ''] = process.argv.slice(2);
const threads = new Map<string, Worker>();
process.on('worker', (worker: Worker) => threads.set(worker.threadName ?? '', worker));
const write = (level: string) => (event: string, fields?: object) => console.log(JSON.stringify({ event, level, ...fields }));
const log = { info: write('info'), warn: write('warn'), error: write('error') };
const server = await openServer(serviceConfig.parse({ data, http: { port: 0 } }), { log });
await server.listen();
await threads.get(`store-${role}`)?.terminate();
await setTimeout(20_000);
process.exit(99);
