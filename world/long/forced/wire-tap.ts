// A proxy in front of an engine that keeps every generation as it was on the wire: the ids of the prompt, and the ids of the reply.

import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { definedOf } from '@millrace/protocol';

interface TappedCall {
  readonly promptIds: readonly number[];
  readonly sampledIds: readonly number[];
  /** The data-parallel rank and the model that were asked for. */
  readonly rank?: string;
  readonly model?: string;
}

export class WireTap implements AsyncDisposable {
  readonly calls: TappedCall[] = [];
  readonly #target: string;
  readonly #server = createServer((incoming, outgoing) => {
    // Either side may hang up at any moment, as a probe of a busy engine does: then the other one is cut too, and nothing is kept.
    this.#forward(incoming, outgoing).catch(() => outgoing.destroy());
  });

  private constructor(target: string) {
    this.#target = target;
  }

  static async open(target: string): Promise<WireTap> {
    const tap = new WireTap(target);
    await once(tap.#server.listen(0, '127.0.0.1'), 'listening');
    return tap;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = Buffer.concat(await Array.fromAsync(incoming));
    const { method, headers, url = '' } = incoming;
    // A connection of its own: the engine closes idle ones while they are used again.
    const call = request(`${this.#target}${url}`, { method, headers, agent: false });
    outgoing.on('close', () => call.destroy());
    call.end(body);
    const [reply] = (await once(call, 'response')) as [IncomingMessage];
    call.on('error', () => outgoing.destroy());
    outgoing.writeHead(reply.statusCode ?? 500, reply.headers);
    const parts: Buffer[] = [];
    for await (const part of reply as AsyncIterable<Buffer>) {
      parts.push(part);
      outgoing.write(part);
    }
    if (/generate$|completions$/.test(url)) this.#keep(body.toString(), Buffer.concat(parts).toString(), headers['x-data-parallel-rank']);
    outgoing.end();
  }

  /** The generate route has the ids in `token_ids`, the other one in the names of the logprobs. */
  #keep(asked: string, answered: string, rank: string | string[] | undefined): void {
    const { token_ids, prompt, model } = JSON.parse(asked) as { token_ids?: number[]; prompt?: number[]; model?: string };
    const promptIds = token_ids ?? prompt ?? [];
    const lists = [...answered.matchAll(/"token_ids":\s*\[([\d,\s]*)\]/g)].flatMap(([, list = '']) => list.split(',').filter(Boolean));
    const names = [...answered.matchAll(/"tokens":\s*\[([^\]]*)\]/g)].flatMap(([, list = '']) => list.match(/\d+/g) ?? []);
    this.calls.push({ promptIds, sampledIds: (token_ids ? lists : names).map(Number), ...definedOf({ model, rank: rank?.toString() }) });
  }
}
