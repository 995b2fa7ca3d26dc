// The webhook of the chaos run: keeps every group that it acknowledged, and can break connections or answer late.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';

type ReceiverMode = { readonly kind: 'well' | 'dead' } | { readonly kind: 'slow'; readonly ms: number };

export interface Receiver extends AsyncDisposable {
  readonly url: string;
  /** Digests of the bodies acknowledged for each `batch/seq`. A sender may repeat one, but never with another content. */
  readonly seen: ReadonlyMap<string, ReadonlySet<string>>;
  /** Requests that met a mode other than `well`. */
  readonly disturbed: number;
  setMode(mode: ReceiverMode): void;
}

export async function openReceiver(): Promise<Receiver> {
  const seen = new Map<string, Set<string>>();
  let mode: ReceiverMode = { kind: 'well' };
  let disturbed = 0;
  const server = createServer(async (request, response) => {
    const { kind } = mode;
    if (kind !== 'well') disturbed += 1;
    if (kind === 'dead') {
      request.socket.destroy();
      return;
    }
    try {
      const body = await text(request);
      if (mode.kind === 'slow') await pause(mode.ms);
      const id = `${request.headers['webhook-id']}`;
      const digests = seen.get(id) ?? new Set();
      seen.set(id, digests.add(createHash('sha256').update(body).digest('hex')));
      response.writeHead(204).end();
    } catch {} // the sender was killed: it sends the group again
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    seen,
    get disturbed() {
      return disturbed;
    },
    setMode(next) {
      mode = next;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}
