// Which wire a request speaks, by its method and path below the gateway's address.

import type { Wire, WireAddress } from '../wire-request.ts';
import { anthropicWire } from './anthropic.ts';
import { chatWire } from './chat.ts';

/** `count`: only the tokens of the prompt are counted. `models`: the list of models. */
export interface FoundWire {
  readonly wire: Wire;
  readonly what: 'reply' | 'count' | 'models';
  readonly address: WireAddress;
}

/** Undefined for any other path. */
export function findWire(method: string, path: string, _query: URLSearchParams): FoundWire | undefined {
  const found = (wire: Wire, what: FoundWire['what'] = 'reply', address: WireAddress = {}) => ({ wire, what, address });
  switch (`${method} ${path}`) {
    case 'POST /v1/chat/completions':
      return found(chatWire);
    case 'POST /v1/messages':
      return found(anthropicWire);
    case 'POST /v1/messages/count_tokens':
      return found(anthropicWire, 'count');
    case 'GET /v1/models':
      return found(chatWire, 'models');
    default:
      return undefined;
  }
}
