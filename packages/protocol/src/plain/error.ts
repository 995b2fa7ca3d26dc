// The error table: every error code, with the blame, whether a retry can help, and the HTTP status. A code that is not in this table
// cannot be thrown, stored or returned.

import { definedOf } from './defined.ts';

/** `task` covers the task and its scenario. */
export const blames = ['caller', 'policy', 'task', 'sandbox', 'backend', 'verifier', 'service'] as const;
export type Blame = (typeof blames)[number];

interface ErrorRow {
  readonly blame: Blame;
  readonly retryable: boolean;
  readonly status: number;
}

export const errorTable = {
  // Replies to a request.
  'bad-request': { blame: 'caller', retryable: false, status: 400 },
  'unknown-scenario': { blame: 'caller', retryable: false, status: 400 },
  'task-invalid': { blame: 'caller', retryable: false, status: 400 },
  unauthorized: { blame: 'caller', retryable: false, status: 401 },
  forbidden: { blame: 'caller', retryable: false, status: 403 },
  'not-found': { blame: 'caller', retryable: false, status: 404 },
  'method-not-allowed': { blame: 'caller', retryable: false, status: 405 },
  'not-acceptable': { blame: 'caller', retryable: false, status: 406 },
  'request-timeout': { blame: 'caller', retryable: true, status: 408 },
  conflict: { blame: 'caller', retryable: false, status: 409 },
  gone: { blame: 'caller', retryable: false, status: 410 },
  'body-too-large': { blame: 'caller', retryable: false, status: 413 },
  'unsupported-media-type': { blame: 'caller', retryable: false, status: 415 },
  'too-busy': { blame: 'service', retryable: true, status: 429 },
  'not-running': { blame: 'service', retryable: true, status: 503 },
  'store-full': { blame: 'service', retryable: true, status: 507 },
  'wait-timeout': { blame: 'service', retryable: true, status: 504 },
  internal: { blame: 'service', retryable: true, status: 500 },
  'trajectory-missing': { blame: 'service', retryable: false, status: 500 },
  // Its bytes are not those that were written, or belong to another rollout or attempt. Clients raise it too.
  'trajectory-corrupt': { blame: 'service', retryable: false, status: 500 },
  // Raised by clients only: the service did not reply.
  unreachable: { blame: 'service', retryable: true, status: 503 },
  // Failures of a rollout.
  cancelled: { blame: 'caller', retryable: false, status: 409 },
  'sandbox-start-failed': { blame: 'sandbox', retryable: true, status: 500 },
  'sandbox-died': { blame: 'sandbox', retryable: true, status: 500 },
  'sandbox-killed': { blame: 'policy', retryable: false, status: 500 },
  'sandbox-limit': { blame: 'policy', retryable: false, status: 500 },
  'sandbox-refused': { blame: 'task', retryable: false, status: 400 },
  // Thrown by scenarios as a ScenarioError with an explicit blame.
  'sandbox-failed': { blame: 'sandbox', retryable: true, status: 500 },
  'task-failed': { blame: 'task', retryable: false, status: 500 },
  'policy-failed': { blame: 'policy', retryable: false, status: 500 },
  'init-failed': { blame: 'task', retryable: false, status: 500 },
  'init-timeout': { blame: 'task', retryable: false, status: 500 },
  'run-failed': { blame: 'task', retryable: false, status: 500 },
  // The process of a scenario in Python died or did not answer.
  'scenario-died': { blame: 'task', retryable: true, status: 500 },
  'tool-failed': { blame: 'task', retryable: false, status: 500 },
  // The server of an HTTP tool or an MCP server of the configuration cannot be reached.
  'tool-unavailable': { blame: 'sandbox', retryable: true, status: 502 },
  'backend-failed': { blame: 'backend', retryable: true, status: 502 },
  'backend-refused': { blame: 'backend', retryable: false, status: 502 },
  'backend-bad-reply': { blame: 'backend', retryable: true, status: 502 },
  'evaluate-failed': { blame: 'verifier', retryable: false, status: 500 },
  'evaluate-timeout': { blame: 'verifier', retryable: false, status: 500 },
  // The machine starved or killed what judges: no verdict, and no fault of the agent or the verifier.
  'evaluate-disturbed': { blame: 'service', retryable: true, status: 500 },
  'artifact-too-large': { blame: 'policy', retryable: false, status: 500 },
  'too-stale': { blame: 'service', retryable: true, status: 500 },
  // No client used a gateway, and no caller ended it.
  'gateway-abandoned': { blame: 'caller', retryable: false, status: 409 },
  'worker-lost': { blame: 'service', retryable: true, status: 500 },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorTable;

export const errorCodes = Object.keys(errorTable) as [ErrorCode, ...ErrorCode[]];

/** The one error class of Millrace. Any other error gets a code where it crosses a boundary. */
export class RolloutError extends Error {
  readonly code: ErrorCode;
  readonly details: Record<string, unknown> | undefined;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; details?: Record<string, unknown> } = {}) {
    super(message, definedOf({ cause: options.cause }));
    this.name = 'RolloutError';
    this.code = code;
    this.details = options.details;
  }

  get blame(): Blame {
    return errorTable[this.code].blame;
  }

  get retryable(): boolean {
    return errorTable[this.code].retryable;
  }

  get status(): number {
    return errorTable[this.code].status;
  }
}

/** Wraps a call across a boundary: a RolloutError passes unchanged, any other error becomes one with `code` and the same message. */
export async function blame<T>(code: ErrorCode, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toRolloutError(error, code);
  }
}

export function toRolloutError(error: unknown, code: ErrorCode): RolloutError {
  if (error instanceof RolloutError) return error;
  return new RolloutError(code, messageOf(error), { cause: error });
}

/** The message of anything that was thrown; the class of an error without a message. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // OpenSSL's own words are a line of its source.
  if ('code' in error && error.code === 'ERR_SSL_WRONG_VERSION_NUMBER') return 'the server speaks http, not https';
  return error.message || error.constructor.name;
}
