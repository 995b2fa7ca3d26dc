// The calls of workers that have this server in place of a store. What is asked at the same moment goes to the store together, which runs
// each kind of call as one statement where it has one; here nothing waits for company.

import { messageOf, RolloutError } from '@millrace/protocol';
import { eventsWait, isWorkerCall, runWorkerCall, type Store, StoreFault, toWireFault, workerWire } from '@millrace/store';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type AppContext, closedSignal } from '../context/context.ts';
import { shareReads } from '../machines/shared-reads.ts';
import { workerCallsPath } from '../request/auth.ts';

/** A trajectory of a million tokens with its texts is far smaller. */
const mostBytes = 512 << 20;
/** More calls than this at the same time wait at their workers. */
const mostRunning = 10_000;
const busyRetryMs = 500;

export function mountWorkerCalls(app: FastifyInstance, context: AppContext): void {
  const store = shareReads(context.store);
  let running = 0;
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: mostBytes }, (_request, body, done) => done(null, body));
    scope.post(workerCallsPath, { bodyLimit: mostBytes }, async (request, reply) => {
      if (running >= mostRunning)
        throw new RolloutError('too-busy', `${running} calls of workers are running`, { details: { retry_after_ms: busyRetryMs } });
      running += 1;
      try {
        return await answer(request, reply, { ...context, store });
      } finally {
        running -= 1;
      }
    });
  });
}

async function answer(request: FastifyRequest, reply: FastifyReply, context: AppContext): Promise<FastifyReply> {
  checkWire(request, reply);
  const { name } = z.object({ name: z.string() }).parse(request.params);
  const { json, attachment } = readBody(request.body);
  reply.type('application/json');
  try {
    const value =
      name === 'awaitEvents' ? await awaitEvents(json, reply, context) : await runCall(name, json, { store: context.store, attachment });
    return await reply.send(JSON.stringify({ value }));
  } catch (error) {
    if (error instanceof StoreFault) {
      const { message, isDiskFull, isUnknown } = error;
      context.log.error('worker-call-failed', { call: name, error: message });
      return await reply.status(503).send(JSON.stringify({ fault: { message, isDiskFull, isUnknown } }));
    }
    // Another server would say the same: the worker is not to repeat it.
    if (error instanceof RolloutError && error.code !== 'not-found')
      return await reply.status(422).send(JSON.stringify({ refused: { code: error.code, message: error.message } }));
    throw error;
  }
}

async function runCall(name: string, json: unknown, call: { readonly store: Store; readonly attachment: Uint8Array | undefined }) {
  if (!isWorkerCall(name)) throw new RolloutError('not-found', `no such call of workers: ${name}`);
  try {
    return await runWorkerCall(name, json, call);
  } catch (error) {
    if (error instanceof z.ZodError) throw new RolloutError('bad-request', `${name}: ${z.prettifyError(error)}`);
    throw error;
  }
}

async function awaitEvents(json: unknown, reply: FastifyReply, { workerFeed }: AppContext) {
  const { after, waitMs } = eventsWait.parse(json);
  return await workerFeed.read(after, waitMs, closedSignal(reply));
}

/** A worker of another wire would be misunderstood. */
function checkWire({ headers }: FastifyRequest, reply: FastifyReply): void {
  const fault = toWireFault(Number(headers['millrace-wire'] ?? 0));
  if (fault === undefined) return;
  reply.header('millrace-wire', `${workerWire}`);
  throw new RolloutError('conflict', fault);
}

/** JSON in one line, and what comes after it. */
function readBody(body: unknown): { readonly json: unknown; readonly attachment: Uint8Array | undefined } {
  if (!Buffer.isBuffer(body)) return { json: undefined, attachment: undefined };
  const end = body.indexOf('\n');
  const text = (end === -1 ? body : body.subarray(0, end)).toString();
  try {
    return { json: JSON.parse(text) ?? undefined, attachment: end === -1 ? undefined : body.subarray(end + 1) };
  } catch (error) {
    throw new RolloutError('bad-request', `the call is not valid JSON: ${messageOf(error)}`);
  }
}
