// Opens the adapter for a record's dialect. The one place that knows all adapters.

import type { Dialect } from '@millrace/protocol';
import type { Backend, BackendRecord } from './backend.ts';
import { fitContext } from './context-length.ts';
import type { HttpBackendOptions } from './http-backend.ts';
import { openLlamacppBackend } from './llamacpp.ts';
import { llamacppRoute } from './llamacpp-wire.ts';
import { openSglangBackend } from './sglang.ts';
import { sglangRoute } from './sglang-wire.ts';
import { openVllmBackend } from './vllm.ts';
import { completionsRoute, generateRoute } from './vllm-wire.ts';

export function openBackend(record: BackendRecord, options: HttpBackendOptions): Backend {
  return fitContext(openDialect(record, options), record);
}

function openDialect(record: BackendRecord, options: HttpBackendOptions): Backend {
  switch (record.dialect) {
    case 'vllm':
    case 'vllm-completions':
      return openVllmBackend(record, options);
    case 'sglang':
      return openSglangBackend(record, options);
    case 'llamacpp':
      return openLlamacppBackend(record, options);
  }
}

/** The routes that a dialect's calls may use, best first. */
export const tokenRoutes: Readonly<Record<Dialect, readonly string[]>> = {
  vllm: [generateRoute.path, completionsRoute.path],
  'vllm-completions': [completionsRoute.path],
  sglang: [sglangRoute.path],
  llamacpp: [llamacppRoute.path],
};
