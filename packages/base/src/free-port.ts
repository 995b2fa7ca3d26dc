// A port that no process of this machine listens on. Users and deployments of a shared machine never agree on fixed ones.

import { once } from 'node:events';
import { createServer } from 'node:net';

/** `wanted` if it is free, so that addresses last over a restart; any free one otherwise. */
export async function chooseFreePort(host: string, wanted = 0): Promise<number> {
  if (wanted > 0 && (await tryPort(host, wanted)) !== undefined) return wanted;
  const port = await tryPort(host, 0);
  if (port === undefined) throw new Error(`no port is free on ${host}, or it is not an address of this machine`);
  return port;
}

async function tryPort(host: string, port: number): Promise<number | undefined> {
  const server = createServer();
  try {
    server.listen({ host, port, exclusive: true });
    await once(server, 'listening');
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : undefined;
  } catch {
    return undefined; // in use, or not ours to use
  } finally {
    server.close();
  }
}
