// Opens the adapter for a record's dialect. The one place that knows all adapters.

import type { Backend, BackendRecord } from './backend.ts';
import type { HttpBackendOptions } from './http-backend.ts';
import { openLlamacppBackend } from './llamacpp.ts';
import { openSglangBackend } from './sglang.ts';
import { openVllmBackend } from './vllm.ts';

export function openBackend(record: BackendRecord, options: HttpBackendOptions): Backend {
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
