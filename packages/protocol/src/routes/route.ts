// A route of the table, and what routes have in common.

import { type ZodObject, type ZodType, z } from 'zod';
import type { ErrorCode } from '../plain/error.ts';

export interface RouteReply {
  readonly description: string;
  /** By media type: a schema for JSON, or the kind of bytes. */
  readonly content: Readonly<Record<string, ZodType | 'text' | 'binary'>>;
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly tag: 'rollouts' | 'batches' | 'evaluations' | 'gateways' | 'backends' | 'policy' | 'trainer' | 'service' | 'prorl';
  readonly summary: string;
  readonly params?: ZodObject;
  readonly query?: ZodObject;
  readonly body?: ZodType;
  readonly replies: Readonly<Record<number, RouteReply>>;
  /** In addition to those of every route: bad-request, unauthorized, forbidden and internal. */
  readonly errors: readonly ErrorCode[];
}

export const longestWaitSeconds = 60;
export const mostListed = 1000;

export const intakeErrors = ['body-too-large', 'unsupported-media-type', 'too-busy', 'not-running'] as const;
export const bodyErrors = ['body-too-large', 'unsupported-media-type'] as const;

export function json(description: string, schema: ZodType): RouteReply {
  return { description, content: { 'application/json': schema } };
}

export function waitQuery(what: string) {
  const seconds = z.coerce.number().min(0).max(longestWaitSeconds).default(0);
  return z.strictObject({ wait: seconds.describe(`Seconds to wait for ${what} before replying with the current state.`) });
}
