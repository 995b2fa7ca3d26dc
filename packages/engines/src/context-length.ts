// Keeps a call inside its server's context. vLLM and llama.cpp shorten a reply to the room that is left; SGLang and older versions of
// vLLM refuse the whole request, which says nothing about the rollout.

import { RolloutError } from '@millrace/protocol';
import type { Backend, BackendRecord, GenerateRequest } from './backend.ts';

/** SGLang refuses a request that would fill its context to the last token. */
const reservedTokens = { vllm: 0, 'vllm-completions': 0, sglang: 1, llamacpp: 0, prorl: 0, chat: 0 } as const;

/** Asks for no more tokens than fit. If the server refuses the sum all the same, it is asked once more, for fewer. */
export function fitContext(backend: Backend, { dialect, probe }: Pick<BackendRecord, 'dialect' | 'probe'>): Backend {
  const shorten = (request: GenerateRequest, contextTokens: number | undefined): GenerateRequest | undefined => {
    const room = (contextTokens ?? 0) - request.promptTokens - reservedTokens[dialect];
    return room >= 1 && room < request.maxTokens ? { ...request, maxTokens: room } : undefined;
  };
  return {
    ...backend,
    async generate(asked) {
      const request = shorten(asked, probe?.contextTokens) ?? asked;
      try {
        return await backend.generate(request);
      } catch (error) {
        const shorter = shorten(request, findContextTokens(error));
        if (!shorter) throw error;
        return await backend.generate({ ...shorter, requestId: `${request.requestId}-2` });
      }
    },
  };
}

/** How a refusal is recognized: its words, and the context length that most servers name in it. */
export function toLengthDetails(text: string): Record<string, unknown> | undefined {
  if (!/context (length|size)|max_model_len/i.test(text)) return undefined;
  const [, tokens] = /(?:context (?:length|size)|model length)[^0-9]{0,12}([0-9]{1,9})/i.exec(text) ?? [];
  return { reason: 'context-length', ...(tokens === undefined ? {} : { context_tokens: Number(tokens) }) };
}

function findContextTokens(error: unknown): number | undefined {
  const tokens = error instanceof RolloutError && error.code === 'backend-refused' ? error.details?.context_tokens : undefined;
  return typeof tokens === 'number' ? tokens : undefined;
}
