// The HTTP floor's configuration: each field with its default and one sentence on what it does.

import { z } from 'zod';

export const httpConfig = z.strictObject({
  host: z.string().min(1).default('127.0.0.1').describe('The address to listen on; any but a loopback address needs a key.'),
  port: z.int().min(0).max(65_535).default(8007).describe('The port to listen on; 0 takes a free one.'),
  keys: z
    .array(z.string().regex(/^[\x21-\x7e]{16,}$/, 'must be 16 or more visible ASCII characters without spaces'))
    .default([])
    .describe('Keys that callers may show as `Authorization: Bearer`; none leaves a loopback address open.'),
  maxBodyBytes: z
    .int()
    .min(1024)
    .default(64 << 20)
    .describe('The largest request body that is read.'),
  maxQueued: z
    .int()
    .min(1)
    .default(20_000)
    .describe('How many rollouts may wait in the queue before submissions are told to come back later.'),
  requestTimeoutMs: z.int().min(100).default(60_000).describe('How long a caller may take to send one request.'),
});
export type HttpConfig = z.infer<typeof httpConfig>;
