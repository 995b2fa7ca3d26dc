// Configuration of the HTTP API.

import { z } from 'zod';

export const httpConfig = z.strictObject({
  host: z.string().min(1).default('127.0.0.1').describe('The address to listen on. An address other than loopback requires a key.'),
  port: z.int().min(0).max(65_535).default(8007).describe('The port to listen on; 0 picks a free port.'),
  keys: z
    .array(z.string().regex(/^[\x21-\x7e]{16,}$/, 'must be 16 or more visible ASCII characters without spaces'))
    .default([])
    .describe('Keys that callers send as `Authorization: Bearer`. Without keys, every local process can call the API.'),
  maxBodyBytes: z
    .int()
    .min(1024)
    .default(64 << 20)
    .describe('The largest request body that is accepted.'),
  maxQueued: z.int().min(1).default(20_000).describe('How many rollouts may be queued before submissions get 429 with Retry-After.'),
  requestTimeoutMs: z.int().min(100).default(60_000).describe('How long a client may take to send a request.'),
});
export type HttpConfig = z.infer<typeof httpConfig>;
