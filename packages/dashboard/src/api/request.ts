// Requests to the service that serves this page.

import { answerExported } from './exported-page.ts';
import { authorization } from './key.ts';

export class RequestError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

interface RequestOptions {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

export async function request<T>(path: string, { method = 'GET', body, signal }: RequestOptions = {}): Promise<T> {
  if (answerExported !== undefined) return toAnswer<T>(answerExported(path));
  const headers = { ...authorization(), ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
  const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }), ...(signal ? { signal } : {}) };
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new RequestError(0, 'unreachable', 'the service does not answer');
  }
  if (response.ok) return (await response.json()) as T;
  throw await toRequestError(response);
}

function toAnswer<T>(answer: unknown): T {
  if (answer === undefined) throw new RequestError(404, 'not-found', 'this page was exported without it');
  return answer as T;
}

export async function toRequestError(response: Response): Promise<RequestError> {
  const reply = (await response.json().catch(() => ({}))) as { error?: { code?: string; message?: string } }; // a proxy may answer in HTML
  const { code = 'unknown', message = `the service answered ${response.status}` } = reply.error ?? {};
  return new RequestError(response.status, code, message);
}

export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

export function toQuery(query: Readonly<Record<string, string | number | undefined>>): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, String(value)]]));
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
}
