// What a server and the worker processes that it starts say to each other over their IPC channel.

import { tokenizerSample } from '@millrace/worker';
import { z } from 'zod';
import { serviceConfig } from './config.ts';
import { logFormats } from './text-log.ts';

/** The first and only message to a worker. */
export const workerOrder = z.object({
  config: serviceConfig,
  logFormat: z.enum(logFormats),
  launch: z.string(),
  key: z.string().optional(),
});
export type WorkerOrder = z.infer<typeof workerOrder>;

/** What a worker learned when it opened its model. */
const openedModel = z.object({
  /** How its tokenizer encodes a few texts. */
  tokenizer: tokenizerSample,
  /** What operators should know about the model. */
  warnings: z.array(z.string()),
});
export type OpenedModel = z.infer<typeof openedModel>;

/** How often a worker reports that its event loop runs. */
export function toPulseMs({ leaseMs }: { readonly leaseMs: number }): number {
  return Math.max(1000, leaseMs / 2);
}

/** `ready`: it claims rollouts. `pulse`: its event loop runs. `stopped`: why it could not start, or what it crashed on. */
export const workerReport = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ready'), model: openedModel.optional() }),
  z.object({ kind: z.literal('pulse') }),
  z.object({ kind: z.literal('stopped'), reason: z.string(), stack: z.string().optional() }),
]);
export type WorkerMessage = z.infer<typeof workerReport>;

/** The exit code of a worker that would fail again however often it is started. */
export const cannotStartCode = 78;
