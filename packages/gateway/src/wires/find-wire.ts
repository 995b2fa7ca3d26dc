// Which wire a request speaks, by its method and path below the gateway's address.

import { definedOf } from '@millrace/protocol';
import { GatewayError, type Wire, type WireAddress } from '../wire-request.ts';
import { anthropicWire } from './anthropic.ts';
import { chatWire } from './chat.ts';
import { geminiWire } from './gemini.ts';
import { responsesWire } from './responses.ts';

/** `count`: only the tokens of the prompt are counted. `models`: the list of models. */
export interface FoundWire {
  readonly wire: Wire;
  readonly what: 'reply' | 'count' | 'models';
  readonly address: WireAddress;
}

/** Undefined for any other path. Throws where a client would otherwise try again. */
export function findWire(method: string, path: string, query: URLSearchParams): FoundWire | undefined {
  const found = (wire: Wire, what: FoundWire['what'] = 'reply', address: WireAddress = {}) => ({ wire, what, address });
  switch (`${method} ${path}`) {
    case 'POST /v1/chat/completions':
      return found(chatWire);
    case 'POST /v1/responses':
      return found(responsesWire);
    case 'POST /v1/messages':
      return found(anthropicWire);
    case 'POST /v1/messages/count_tokens':
      return found(anthropicWire, 'count');
    case 'GET /v1/responses':
      // Codex then sends its requests over HTTP at once; after a 404 it tries again for seconds.
      throw new GatewayError('no-websocket', 'there is no WebSocket here: send a POST request');
    case 'GET /v1/models':
      return found(chatWire, 'models');
  }
  const [, model, action] = /^\/v1(?:beta|alpha)?\/models\/([^/:]{1,200}):(generateContent|streamGenerateContent)$/.exec(path) ?? [];
  if (method !== 'POST' || action === undefined) return undefined;
  const isStreamed = action === 'streamGenerateContent';
  if (isStreamed && query.get('alt') !== 'sse') return found({ ...geminiWire, parse: refuseArray });
  return found(geminiWire, 'reply', definedOf({ model, isStreamed }));
}

function refuseArray(): never {
  throw new GatewayError('invalid', 'a stream is sent as server-sent events only: add alt=sse', 'alt');
}
