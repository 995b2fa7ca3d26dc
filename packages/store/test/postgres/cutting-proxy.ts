// A proxy in front of PostgreSQL's socket that breaks a connection at its next commit: before the server gets it, or before the client
// gets the reply.

import { once } from 'node:events';
import { createConnection, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { makeTempFolder } from '@millrace/testkit';

export interface CuttingProxy extends AsyncDisposable {
  readonly socketFolder: string;
  readonly cuts: number;
  cutNextCommit(options: { readonly isForwarded: boolean }): void;
  /** Breaks all connections for their clients. The server knows nothing of it, as after a network that failed. */
  loseClients(): void;
}

const socketFile = '.s.PGSQL.5432';

export async function openCuttingProxy(serverFolder: string): Promise<CuttingProxy> {
  const folder = await makeTempFolder('proxy');
  const sockets = new Set<Socket>();
  const clients = new Set<Socket>();
  let cutting: { readonly isForwarded: boolean } | undefined;
  let cuts = 0;
  const server = createServer((client) => {
    const upstream = createConnection(join(serverFolder, socketFile));
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {}); // the other side is closed too
      socket.on('close', () => sockets.delete(socket));
    }
    client.on('data', (chunk) => {
      // The commit of a write; a read commits alone.
      const isCut = cutting !== undefined && chunk.includes('log_changes');
      if (!isCut || cutting?.isForwarded) upstream.write(chunk);
      if (!isCut) return;
      cutting = undefined;
      cuts += 1;
      client.destroy();
      // The server gets the whole message before its connection ends.
      upstream.end();
    });
    upstream.on('data', (chunk) => client.write(chunk));
    clients.add(client);
    client.on('close', () => clients.delete(client) && upstream.end());
    upstream.on('close', () => client.destroy());
  });
  server.listen(join(folder.path, socketFile));
  await once(server, 'listening');
  return {
    socketFolder: folder.path,
    get cuts() {
      return cuts;
    },
    cutNextCommit(options) {
      cutting = options;
    },
    loseClients() {
      const lost = [...clients];
      clients.clear();
      for (const client of lost) client.destroy();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}
