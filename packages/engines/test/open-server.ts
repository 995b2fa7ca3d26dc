// A server on a free loopback port whose replies a test writes itself.

import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

export async function openServer(listener: RequestListener): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
