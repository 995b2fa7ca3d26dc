// Opens the adapter for a record's dialect. The one place that knows all adapters.

import { type Dialect, RolloutError } from '@millrace/protocol';
import type { Backend, BackendRecord } from './backend.ts';
import { chatRoute } from './chat.ts';
import { fitContext } from './context-length.ts';
import { type HttpBackendOptions, openOneReplyBackend } from './http-backend.ts';
import { llamacppRoute } from './llamacpp-wire.ts';
import { promptIdsRoute } from './prompt-ids.ts';
import { openSglangBackend } from './sglang.ts';
import { sglangRoute } from './sglang-wire.ts';
import { openVllmBackend } from './vllm.ts';
import { completionsRoute, generateRoute } from './vllm-wire.ts';

export function openBackend(record: BackendRecord, options: HttpBackendOptions): Backend {
  return nameAdapter(fitContext(openDialect(record, options), record));
}

/** Says which adapter a server lacks. Another backend may have it, so the error is the backend's, not the request's. */
function nameAdapter(backend: Backend): Backend {
  return {
    ...backend,
    async generate(request) {
      try {
        return await backend.generate(request);
      } catch (error) {
        const { adapter } = request;
        if (adapter === undefined || !(error instanceof RolloutError) || !isWithoutAdapter(error)) throw error;
        const hint = `load it there (POST ${loadRoutes}), or resume the policy with another adapter`;
        const message = `backend ${backend.id} does not serve the LoRA adapter ${adapter}; ${hint}: ${error.message}`;
        throw new RolloutError('backend-failed', message, { cause: error, details: { status: 404, reason: 'adapter' } });
      }
    },
  };
}

const loadRoutes = '/v1/load_lora_adapter on vLLM, /load_lora_adapter on SGLang';

/** vLLM: an unknown model. SGLang: a refusal that names LoRA. */
function isWithoutAdapter({ code, details, message }: RolloutError): boolean {
  return (code === 'backend-failed' && details?.status === 404) || (code === 'backend-refused' && /LoRA/i.test(message));
}

function openDialect(record: BackendRecord, options: HttpBackendOptions): Backend {
  switch (record.dialect) {
    case 'vllm':
    case 'vllm-completions':
      return openVllmBackend(record, options);
    case 'sglang':
      return openSglangBackend(record, options);
    case 'llamacpp':
      return openOneReplyBackend(llamacppRoute, record, options);
    case 'prorl':
      return openOneReplyBackend(promptIdsRoute, record, options);
    case 'chat':
      return openOneReplyBackend(chatRoute, record, options);
  }
}

/** The routes that a dialect's calls may use, best first. */
export const tokenRoutes: Readonly<Record<Dialect, readonly string[]>> = {
  vllm: [generateRoute.path, completionsRoute.path],
  'vllm-completions': [completionsRoute.path],
  sglang: [sglangRoute.path],
  llamacpp: [llamacppRoute.path],
  prorl: [promptIdsRoute.path],
  chat: [chatRoute.path],
};
