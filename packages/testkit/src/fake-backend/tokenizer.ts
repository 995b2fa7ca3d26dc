// The fake tokenizer routes of vLLM, SGLang and llama.cpp, each with the names and the quirks of the real one.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { toVllmError } from './engines/vllm-checks.ts';
import { isRecord, type Json, parseJson } from './engines/wire.ts';
import { writeJson } from './spoil.ts';
import type { FakeTokens } from './tokens.ts';

/** vLLM returns its tokenizer's configuration only if it was started to. */
export type TokenizerDialect = 'vllm' | 'vllm-with-info' | 'sglang' | 'llamacpp';

export const tokenizerPaths: readonly string[] = [
  '/tokenize',
  '/detokenize',
  '/props',
  '/tokenizer_info',
  '/v1/tokenize',
  '/v1/detokenize',
];

interface Served {
  readonly tokens: FakeTokens;
  readonly dialect: TokenizerDialect;
  readonly model: string;
  readonly version: string;
  readonly maxModelLen: number;
  readonly miss: () => void;
}

export async function serveTokenizer(request: IncomingMessage, response: ServerResponse, served: Served): Promise<void> {
  const { dialect, miss } = served;
  const path = request.url?.split('?')[0] ?? '';
  const isSglang = dialect === 'sglang';
  if (request.method === 'GET') {
    const info = toInfo(path, served);
    return info ? writeJson(response, 200, info) : miss();
  }
  if (path.startsWith('/v1') && !isSglang) return miss();
  const body: unknown = parseJson(await readText(request).catch(() => ''));
  const answer = isRecord(body) ? (path.endsWith('/detokenize') ? toText(body, served) : toTokens(body, served)) : undefined;
  if (answer) return writeJson(response, 200, answer);
  writeJson(response, 400, toVllmError(400, `the fake backend does not accept such a body for ${path}`));
}

function toInfo(path: string, { dialect, tokens, maxModelLen, model, version }: Served): Json | undefined {
  const { chat_template, bos_token, eos_token } = tokens.config;
  if (path === '/props' && dialect === 'llamacpp')
    return {
      default_generation_settings: { n_ctx: maxModelLen },
      total_slots: 1,
      model_path: `${model}.gguf`,
      chat_template,
      bos_token: bos_token ?? '',
      eos_token,
      build_info: version,
    };
  if (path === '/tokenizer_info' && dialect === 'vllm-with-info')
    return { tokenizer_class: 'Qwen2TokenizerFast', ...toContents(tokens.config) };
  return undefined;
}

/** Every object with a `content`, such as an added token, is only its text. As in vLLM 0.32.0, entrypoints/serve/tokenize/serving.py. */
function toContents(value: Readonly<Record<string, unknown>>): Json {
  const toContent = (one: unknown): unknown => {
    if (Array.isArray(one)) return one.map(toContent);
    if (!isRecord(one)) return one;
    return 'content' in one ? one.content : toContents(one);
  };
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, toContent(one)]));
}

function toTokens(body: Json, { dialect, tokens, maxModelLen }: Served): Json | undefined {
  if (dialect === 'llamacpp') {
    if (typeof body.content !== 'string') return { tokens: [] };
    const ids = Array.from(body.parse_special === false ? tokens.encodeWithoutSpecial(body.content) : tokens.encode(body.content));
    return { tokens: body.with_pieces === true ? ids.map((id) => ({ id, piece: tokens.decode([id]) })) : ids };
  }
  if (typeof body.prompt !== 'string') return undefined;
  const ids = Array.from(tokens.encode(body.prompt));
  if (dialect === 'sglang') return { tokens: ids, count: ids.length, max_model_len: maxModelLen };
  const token_strs = body.return_token_strs === true ? ids.map((id) => tokens.decode([id])) : null;
  return { count: ids.length, max_model_len: maxModelLen, tokens: ids, token_strs };
}

function toText(body: Json, { dialect, tokens }: Served): Json | undefined {
  if (!Array.isArray(body.tokens)) return undefined;
  const text = tokens.decode(body.tokens.map(Number));
  if (dialect === 'llamacpp') return { content: text };
  return dialect === 'sglang' ? { text } : { prompt: text };
}
