// Asks a server about itself: one request, whose reply is read whole up to a limit.

import { type BackendRecord, readBounded, toSessionAddress } from '@millrace/engines';
import { messageOf, RolloutError, tryJson } from '@millrace/protocol';
import { type Dispatcher, request } from 'undici';
import type { z } from 'zod';

export type AskedServer = Pick<BackendRecord, 'url' | 'apiKey' | 'dialect' | 'model'>;

export interface ServerAnswer {
  readonly status: number;
  readonly text: string;
}

export type Ask = (method: 'GET' | 'POST', path: string, body?: Readonly<Record<string, unknown>>) => Promise<ServerAnswer>;

interface ServerAskOptions {
  readonly signal: AbortSignal;
  readonly dispatcher: Dispatcher;
  /** For a router that chooses a server by it. */
  readonly session?: string;
}

const maxReplyBytes = 1 << 20;

/** Throws `backend-failed` if there is no answer. */
export function openAsk({ url, apiKey }: AskedServer, { signal, dispatcher, session = 'probe' }: ServerAskOptions): Ask {
  return async (method, path, sent = {}) => {
    const body = method === 'POST' ? { body: JSON.stringify(sent) } : {};
    const headers = {
      'x-session-id': session,
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    };
    try {
      const reply = await request(toSessionAddress(`${url}${path}`, session), { signal, dispatcher, method, headers, ...body });
      return { status: reply.statusCode, text: await readBounded(reply.body, maxReplyBytes) };
    } catch (error) {
      signal.throwIfAborted();
      throw new RolloutError('backend-failed', `${method} ${url}${path}: ${messageOf(error)}`, { cause: error });
    }
  };
}

/** Undefined for any other status, and for what is not JSON: that comes from another route under this name. */
export function parseAnswer<T>(schema: z.ZodType<T>, { status, text }: ServerAnswer): T | undefined {
  return status === 200 ? schema.safeParse(tryJson(text)).data : undefined;
}
