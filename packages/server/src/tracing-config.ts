// Where traces are sent, and of which rollouts.

import { z } from 'zod';

export const tracingConfig = z.strictObject({
  url: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('Where an OpenTelemetry collector takes traces over OTLP, such as `http://127.0.0.1:4318/v1/traces`. Default: no traces.'),
  share: z.number().min(0).max(1).default(1).describe('The share of rollouts that are traced.'),
  headers: z.record(z.string(), z.string()).default({}).describe('Sent with each export, such as a key of the collector.'),
});
