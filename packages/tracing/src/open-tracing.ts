// Opens the export of traces. The SDK is loaded only then: most processes have no collector.

import type { Tracing } from '@millrace/base/trace-span';
import type { TracingOptions } from './otel.ts';

export async function openTracing(options: TracingOptions): Promise<Tracing> {
  const { openOtel } = await import('./otel.ts');
  return openOtel(options);
}
