// A server in its own thread that answers every request with the same body, so that only the client is measured.

import { Worker } from 'node:worker_threads';

const program = `
const { createServer } = require('node:http');
const { parentPort, workerData } = require('node:worker_threads');
const body = Buffer.from(workerData);
const server = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(body));
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

export async function openReplyThread(body: string): Promise<AsyncDisposable & { readonly url: string }> {
  const worker = new Worker(program, { eval: true, workerData: body });
  const port = await new Promise<number>((resolve, reject) => worker.once('message', resolve).once('error', reject));
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      await worker.terminate();
    },
  };
}
