// The logic of ProRL Agent's verl client, written from what it does on the wire: body-less posts as aiohttp sends them, /process with a job
// id, and the conversion of a result into a row for training. What it would raise as KeyError, IndexError or AssertionError is thrown.

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { json as readJson } from 'node:stream/consumers';

// biome-ignore lint/suspicious/noExplicitAny: the client reads what it gets without a schema
export type Result = any;

interface WireReply {
  readonly status: number;
  readonly body: Result;
}

/** Without a body, aiohttp sends the content type of bytes and a length of 0. */
export function post(url: string, body?: unknown, signal?: AbortSignal): Promise<WireReply> {
  const text = body === undefined ? '' : JSON.stringify(body);
  const headers = {
    'content-type': body === undefined ? 'application/octet-stream' : 'application/json',
    'content-length': Buffer.byteLength(text),
    'user-agent': 'Python/3.12 aiohttp/3.13',
  };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers, ...(signal ? { signal } : {}) }, (reply) => {
      readJson(reply).then((read) => resolve({ status: reply.statusCode ?? 0, body: read }), reject);
    });
    sent.on('error', reject);
    sent.end(text);
  });
}

export interface TrainingRow {
  readonly promptIds: readonly number[];
  readonly responseIds: readonly number[];
  readonly lossMask: readonly (0 | 1)[];
  readonly logprobs: readonly number[];
  /** Excludes the row from the loss. */
  readonly isError: boolean;
}

/** The row that the client trains on. Throws where the client would. */
export function toTrainingRow(result: Result): TrainingRow {
  const all = get(result, 'messages');
  const last = all.findLastIndex((message: Result) => message.role === 'assistant');
  const messages = all.slice(0, last + 1);
  const first = messages.findIndex((message: Result) => message.role === 'assistant');
  assert.ok(messages.length > 0, 'the last message should be an assistant message');
  assert.ok(first > 0, 'a prompt comes before the first assistant message');
  const ids: number[][] = messages.map((message: Result) => get(message, 'token_ids'));
  const flat = (lists: readonly (readonly number[])[]) => lists.flatMap((list) => [...list]);
  const logprobs: number[][] = messages.map((message: Result, at: number) => message.logprobs ?? (ids[at] ?? []).map(() => 0));
  const mask = messages.map((message: Result, at: number) => (ids[at] ?? []).map(() => (message.role === 'assistant' ? 1 : 0)));
  const row = {
    promptIds: flat(ids.slice(0, first)),
    responseIds: flat(ids.slice(first)),
    lossMask: flat(mask.slice(first)) as (0 | 1)[],
    logprobs: flat(logprobs.slice(first)),
    isError: result.error !== null && result.error !== undefined && result.error !== '',
  };
  assert.deepEqual([row.lossMask.length, row.logprobs.length], [row.responseIds.length, row.responseIds.length]);
  return row;
}

/** A missing key is an error in Python. */
function get(of: Result, key: string): Result {
  if (!(key in of)) throw new Error(`KeyError: '${key}'`);
  return of[key];
}
