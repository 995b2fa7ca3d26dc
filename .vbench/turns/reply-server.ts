// An LLM server in its own thread that answers with the chunks of the real engine: each event is written to its socket on its own, one
// for each connection and step, as an engine with many requests in its batch does. The first part of the path is the kind of reply.

import { createServer, type ServerResponse } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';

/** The chunks of each kind of reply. */
export type Replies = Readonly<Record<string, readonly string[]>>;

const replies: Replies = workerData;
const stepMs = 1;

const server = createServer((request, response) => {
  request.resume().on('end', () => {
    const [, kind = ''] = request.url?.split('/') ?? [];
    const chunks = (replies[kind] ?? []).map((chunk) => Buffer.from(chunk));
    const isStream = chunks.length > 1;
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream; charset=utf-8' : 'application/json' });
    if (isStream) running.set(response, { chunks, at: 0 });
    else response.end(chunks[0]);
  });
});

const running = new Map<ServerResponse, { readonly chunks: readonly Buffer[]; at: number }>();
setInterval(() => {
  for (const [response, stream] of running) {
    const chunk = stream.chunks[stream.at++];
    if (chunk) response.write(chunk);
    else {
      running.delete(response);
      response.end();
    }
  }
}, stepMs);

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  parentPort?.postMessage(typeof address === 'object' && address ? address.port : undefined);
});
