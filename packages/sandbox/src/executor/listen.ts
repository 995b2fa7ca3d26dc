// A service of the worker on the loopback of a sandbox, on top of the executor wire.

import { connectionWindowBytes, loopbackCloseReply, loopbackListenReply, RolloutError } from '@millrace/protocol';
import type { ListenOptions, SandboxListener } from '../sandbox.ts';
import type { ExecutorClient } from './executor-client.ts';

const defaultMaxConnections = 64;
const deadlineMs = 60_000;

export async function listen(client: ExecutorClient, options: ListenOptions): Promise<SandboxListener> {
  const { port: wanted = 0, maxConnections = defaultMaxConnections, onConnection, signal } = options;
  const listener = client.connections.addListener({ maxConnections, onConnection });
  const close = async () => {
    const call = { method: 'loopback.close', params: { listener }, reply: loopbackCloseReply, maxBytes: 0, deadlineMs } as const;
    await client.call(call).catch((error: unknown) => {
      if (!(error instanceof RolloutError)) throw error; // otherwise the sandbox is gone, and its connections with it
    });
    client.connections.removeListener(listener);
  };
  const params = { listener, port: wanted, max_connections: maxConnections, window_bytes: connectionWindowBytes };
  try {
    const call = { method: 'loopback.listen', params, reply: loopbackListenReply, maxBytes: 0, deadlineMs, signal } as const;
    const { port } = (await client.call(call)).result;
    return { port, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close(); // after a cancel, the executor may listen
    throw error;
  }
}
