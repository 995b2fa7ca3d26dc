// Configuration of the HTTP API.

import { isIP } from 'node:net';
import { z } from 'zod';

const keys = z.array(z.string().regex(/^[\x21-\x7e]{16,}$/, 'must be 16 or more visible ASCII characters without spaces')).default([]);

function isSubnet(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return rest.length === 0 && most > 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most));
}

export const httpConfig = z.strictObject({
  host: z.string().min(1).default('127.0.0.1').describe('The address to listen on. An address other than loopback requires a key.'),
  port: z.int().min(0).max(65_535).default(8007).describe('The port to listen on; 0 picks a free port.'),
  keys: keys.describe(
    'Keys that callers send as `Authorization: Bearer`, with every right. Without keys of any kind, every local process can call the API.',
  ),
  submitKeys: keys.describe(
    'Keys that can read everything and submit, append to, acknowledge and cancel rollouts, batches and evaluations.',
  ),
  readKeys: keys.describe('Keys that can only read.'),
  workerKeys: keys.describe('Keys of machines: workers that join with one can do what workers do, and nothing else.'),
  maxBodyBytes: z
    .int()
    .min(1024)
    .default(64 << 20)
    .describe('The largest request body that is accepted.'),
  maxPageBytes: z
    .int()
    .min(1)
    .default(64 << 20)
    .describe('A page of groups ends before its trajectories exceed this size as they are stored; a page of JSON, an eighth of it.'),
  maxQueued: z.int().min(1).default(20_000).describe('How many rollouts may be queued before submissions get 429 with Retry-After.'),
  webhookHosts: z
    .array(z.string().regex(/^[\w.:-]+(\/\d{1,3})?$/, 'must be a host name, an address, or a subnet such as 10.0.0.0/8'))
    .default([])
    .describe('The hosts that webhooks may name. Empty: every host, except link-local and metadata addresses.'),
  prorl: z
    .strictObject({
      timeoutS: z
        .number()
        .gt(0)
        .max(40_000)
        .default(300)
        .describe(
          "ProRL Agent's `--timeout`: the time of each stage of a job of its routes. A job that took longer in all is reported as a timeout, and one without a result after twice this time and ten seconds is cancelled.",
        ),
      withoutKey: z
        .array(z.string().refine(isSubnet, 'must be an address or a subnet such as 10.0.0.0/8'))
        .default([])
        .describe("Addresses and subnets from which ProRL Agent's routes can be called without a key, because its clients send none."),
      rewardServers: z
        .array(z.string().min(1))
        .default([])
        .describe(
          "ProRL Agent's `--reward-server-ip`: hosts that score on ports 8388 and 8288, or whole addresses. With one, the scenario `reward-server` exists.",
        ),
    })
    .prefault({})
    .describe("ProRL Agent's routes."),
  requestTimeoutMs: z.int().min(100).default(60_000).describe('How long a client may take to send a request.'),
});
export type HttpConfig = z.infer<typeof httpConfig>;
