// A backend's own tokenizer over HTTP, as vLLM, SGLang and llama.cpp serve it, and the model's configuration where it is given out.

import { z } from 'zod';

export interface TokenSource {
  readonly url: string;
  /** Control tokens in the text are recognised; no token is added before or after it. */
  tokenize(text: string): Promise<Int32Array>;
  /** The same for text in which none should be; some servers recognise some all the same. */
  tokenizePlain(text: string): Promise<Int32Array>;
  detokenize(tokenIds: Int32Array): Promise<string>;
  /** What tokenizer_config.json would say, as far as the server tells it. */
  readonly config: Readonly<Record<string, unknown>>;
}

export interface TokenSourceOptions {
  readonly apiKey?: string;
  readonly signal?: AbortSignal;
}

const tokensReply = z.looseObject({ tokens: z.array(z.int().min(0)) });
/** vLLM, SGLang and llama.cpp each have their own name for it. */
const textReply = z.union([
  z.looseObject({ prompt: z.string() }).transform(({ prompt }) => prompt),
  z.looseObject({ text: z.string() }).transform(({ text }) => text),
  z.looseObject({ content: z.string() }).transform(({ content }) => content),
]);
const props = z.looseObject({ chat_template: z.string(), bos_token: z.string().optional(), eos_token: z.string().optional() });

/** Asks the server which one it is. Throws an Error that names it. */
export async function openTokenSource(url: string, { apiKey, signal }: TokenSourceOptions = {}): Promise<TokenSource> {
  const base = url.replace(/\/+$/, '');
  const call = openCall(base, { ...(apiKey === undefined ? {} : { apiKey }), ...(signal ? { signal } : {}) });
  const llamacpp = props.safeParse(await call('/props').catch(() => undefined)); // only llama.cpp has it
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
    const ask = (parse_special: boolean) => (content: string) => read({ content, add_special: false, parse_special });
    return { ...source, config: { chat_template, bos_token, eos_token }, tokenize: ask(true), tokenizePlain: ask(false) };
  }
  const tokenize = (prompt: string) => read({ prompt, add_special_tokens: false });
  const config = z.record(z.string(), z.unknown()).safeParse(await call('/tokenizer_info').catch(() => undefined)); // off by default
  return { ...source, config: config.data ?? {}, tokenize, tokenizePlain: tokenize };
}

/** A tokenizer answers in milliseconds; one that does not is asked again once. */
const timeoutMs = 10_000;

function openCall(base: string, { apiKey, signal }: TokenSourceOptions): (path: string, body?: object) => Promise<unknown> {
  const headers = { 'content-type': 'application/json', ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }) };
  const once = async (path: string, body: object | undefined): Promise<unknown> => {
    const limit = AbortSignal.timeout(timeoutMs);
    const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
    const reply = await fetch(`${base}${path}`, { ...sent, headers, signal: signal ? AbortSignal.any([signal, limit]) : limit });
    const text = await reply.text();
    if (!reply.ok) throw new Refused(`${base}${path} answered ${reply.status}: ${text.slice(0, 300)}`);
    return JSON.parse(text);
  };
  return async (path, body) => {
    try {
      return await once(path, body);
    } catch (error) {
      if (error instanceof Refused || signal?.aborted) throw error;
      return await once(path, body);
    }
  };
}

class Refused extends Error {}
