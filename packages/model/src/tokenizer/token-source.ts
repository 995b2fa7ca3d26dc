// A backend's tokenizer over HTTP, as vLLM, SGLang and llama.cpp serve it, and the model's configuration if the server offers it.

import { definedOf, messageOf } from '@millrace/protocol';
import { z } from 'zod';

export interface TokenSource {
  readonly url: string;
  /** Control tokens in the text are recognised. No token is added before or after the text. */
  tokenize(text: string): Promise<Int32Array>;
  /** For text without control tokens. Some servers recognise some of them anyway. */
  tokenizePlain(text: string): Promise<Int32Array>;
  detokenize(tokenIds: Int32Array): Promise<string>;
  /** The fields of tokenizer_config.json that the server reports. */
  readonly config: Readonly<Record<string, unknown>>;
}

interface TokenSourceOptions {
  readonly apiKey?: string;
  readonly signal?: AbortSignal;
}

const tokensReply = z.looseObject({ tokens: z.array(z.int().min(0)) });
/** vLLM, SGLang and llama.cpp use different field names. */
const textReply = z.union([
  z.looseObject({ prompt: z.string() }).transform(({ prompt }) => prompt),
  z.looseObject({ text: z.string() }).transform(({ text }) => text),
  z.looseObject({ content: z.string() }).transform(({ content }) => content),
]);
const props = z.looseObject({ chat_template: z.string(), bos_token: z.string().optional(), eos_token: z.string().optional() });

/** Detects the kind of server. Throws an Error that names the address. */
export async function openTokenSource(url: string, { apiKey, signal }: TokenSourceOptions = {}): Promise<TokenSource> {
  const base = url.replace(/\/+$/, '').replace(/\/v1$/, '');
  const call = openCall(base, definedOf({ apiKey, signal }));
  const ask = async (path: string) => await call(path).catch(ignoreMissing);
  const llamacpp = props.safeParse(await ask('/props')); // only llama.cpp has it
  const read = async (body: object) => Int32Array.from(tokensReply.parse(await call('/tokenize', body)).tokens);
  const source = {
    url: base,
    detokenize: async (tokenIds: Int32Array) => {
      if (tokenIds.length === 0) return '';
      return textReply.parse(await call('/detokenize', { tokens: [...tokenIds], skip_special_tokens: false }));
    },
  };
  if (llamacpp.success) {
    const { chat_template, bos_token, eos_token } = llamacpp.data;
    const encode = (parse_special: boolean) => (content: string) => read({ content, add_special: false, parse_special });
    return { ...source, config: { chat_template, bos_token, eos_token }, tokenize: encode(true), tokenizePlain: encode(false) };
  }
  const tokenize = (prompt: string) => read({ prompt, add_special_tokens: false });
  const config = z.record(z.string(), z.unknown()).safeParse(await ask('/tokenizer_info')); // off by default
  return { ...source, config: config.data ?? {}, tokenize, tokenizePlain: tokenize };
}

/** A tokenizer replies in milliseconds; a call that fails is retried once. */
const timeoutMs = 10_000;

function openCall(base: string, { apiKey, signal }: TokenSourceOptions): (path: string, body?: object) => Promise<unknown> {
  const headers = {
    'content-type': 'application/json',
    ...definedOf({ authorization: apiKey === undefined ? undefined : `Bearer ${apiKey}` }),
  };
  const once = async (path: string, body: object | undefined): Promise<unknown> => {
    const limit = AbortSignal.timeout(timeoutMs);
    const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const reply = await fetch(`${base}${path}`, { ...sent, headers, signal: signal ? AbortSignal.any([signal, limit]) : limit });
    const text = await reply.text();
    if (!reply.ok) throw new Refused(`${base}${path} returned ${reply.status}: ${text.slice(0, 300)}`, reply.status);
    return JSON.parse(text);
  };
  return async (path, body) => {
    try {
      return await once(path, body);
    } catch (error) {
      if (error instanceof Refused || signal?.aborted) throw error;
      return await once(path, body).catch((again: unknown) => {
        throw again instanceof Refused ? again : new Error(`${base}${path} does not answer: ${describeCause(again)}`, { cause: again });
      });
    }
  };
}

class Refused extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** fetch hides why it failed in the cause. */
function describeCause(error: unknown): string {
  return messageOf(error instanceof Error && error.cause instanceof Error ? error.cause : error);
}

/** A server without this route is another kind of server; a missing key or an address that does not answer is the user's to correct. */
function ignoreMissing(error: unknown): undefined {
  if (error instanceof SyntaxError || (error instanceof Refused && ![401, 403].includes(error.status))) return undefined;
  throw error;
}
