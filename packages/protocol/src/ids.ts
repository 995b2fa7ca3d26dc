// Ids are branded strings, so that a rollout's id cannot be used as a backend's. Callers may choose ids that match one pattern.

import { z } from 'zod';
import { idPattern } from './plain/id-pattern.ts';

const idText = z.string().regex(idPattern, 'must be 1 to 128 characters of A-Z a-z 0-9 . _ : -, and start with a letter or a digit');

export const rolloutId = idText.brand<'RolloutId'>();
export const groupId = idText.brand<'GroupId'>();
export const batchId = idText.brand<'BatchId'>();
export const evaluationId = idText.brand<'EvaluationId'>();
export const seriesId = idText.brand<'SeriesId'>();
export const backendId = idText.brand<'BackendId'>();
export const workerId = idText.brand<'WorkerId'>();
export const sandboxId = idText.brand<'SandboxId'>();

export type RolloutId = z.infer<typeof rolloutId>;
export type GroupId = z.infer<typeof groupId>;
export type BatchId = z.infer<typeof batchId>;
export type EvaluationId = z.infer<typeof evaluationId>;
export type SeriesId = z.infer<typeof seriesId>;
export type BackendId = z.infer<typeof backendId>;
export type WorkerId = z.infer<typeof workerId>;
export type SandboxId = z.infer<typeof sandboxId>;
