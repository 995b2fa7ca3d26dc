// Asks a server whether it is healthy, without a time limit of its own.

import { type Dialect, RolloutError } from '@millrace/protocol';
import { type Dispatcher, request } from 'undici';
import { toSessionAddress } from './session-address.ts';

interface ServerAddress {
  readonly url: string;
  readonly apiKey?: string;
  readonly dialect?: Dialect;
}

interface HealthRequest {
  readonly signal: AbortSignal;
  readonly dispatcher?: Dispatcher | undefined;
  /** The route to ask first. */
  readonly path?: string;
}

export const promptIdsPath = '/generate';
export const chatPath = '/v1/chat/completions';

/** The one route of servers that may have no other: a GET is answered with 405 by a server that is up. */
const onlyPaths: Partial<Readonly<Record<Dialect, string>>> = { prorl: promptIdsPath, chat: chatPath };

/** The route that samples nothing: SGLang's /health does, and its memory can be released only while it is idle. */
export function healthPathOf(dialect: Dialect): string {
  return onlyPaths[dialect] ?? (dialect === 'sglang' ? '/v1/models' : '/health');
}

/** GET /health, or /v1/models if the server or a router in front of it does not have that route. Throws if it is not healthy. */
export async function readHealth({ url, apiKey, dialect }: ServerAddress, options: HealthRequest): Promise<void> {
  const { path: first = '/health', signal, dispatcher } = options;
  const base = toSessionAddress(url.replace(/\/+$/, ''));
  const get = async (path: string) => {
    const { statusCode, body } = await request(`${base}${path}`, {
      signal,
      headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
      ...(dispatcher ? { dispatcher } : {}),
    });
    await body.dump();
    return { path, statusCode };
  };
  const only = dialect && onlyPaths[dialect];
  const reply = await get(only ?? first);
  if (only !== undefined && reply.statusCode < 500) return;
  const { path, statusCode } = reply.statusCode === 404 || reply.statusCode === 405 ? await get('/v1/models') : reply;
  if (statusCode >= 300) throw new RolloutError('backend-failed', `GET ${base}${path} answered ${statusCode}`);
}
