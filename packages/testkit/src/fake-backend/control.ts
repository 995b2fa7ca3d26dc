// The fake backend's control routes: aborts, pauses and weight versions. vLLM's are as recorded from 0.32.0, SGLang's as in the source of
// 0.5.23 (entrypoints/http_server.py, the function of the route's name).

import { toVllmError } from './engines/vllm-checks.ts';
import { isRecord, type Json } from './engines/wire.ts';
import type { EarlyEnd, FakeGeneration, Gate, PauseKind } from './generation.ts';

/** What the routes act upon. */
interface Controlled {
  readonly gate: Gate;
  readonly generations: ReadonlySet<FakeGeneration>;
  /** Resolves when no generation runs. */
  idle(): Promise<void>;
  readonly weightVersion: string;
  setWeightVersion(version: string): void;
}

interface ControlReply {
  readonly status: number;
  /** Absent if the reply is empty. */
  readonly body?: Json;
  /** An error that no handler of the server caught: it lacks the headers that the others have. */
  readonly isUncaught?: true;
}

export type ControlRoute = (
  controlled: Controlled,
  asked: { readonly body: unknown; readonly query: URLSearchParams },
) => Promise<ControlReply>;

/** Behind --enable-scale-out. */
export const scaleOutAbortPath = '/inference/v1/abort_requests';

const abortById: ControlRoute = async (controlled, { body }) => {
  const ids = isRecord(body) ? body.request_ids : undefined;
  if (!Array.isArray(ids)) return { status: 400, body: badRequest("Missing 'request_ids' in request body", null) };
  stopAll(controlled, 'abort', ids);
  return { status: 200 };
};

/** Of every vLLM and SGLang. */
export const openRoutes: Readonly<Record<string, ControlRoute>> = {
  [`POST ${scaleOutAbortPath}`]: abortById,
  'GET /load': async ({ generations }) => ({ status: 200, body: { server_load: generations.size } }),
};

/** Of a vLLM that was started with VLLM_SERVER_DEV_MODE=1. */
export const devRoutes: Readonly<Record<string, ControlRoute>> = {
  'POST /abort_requests': async (controlled, { body }) => {
    const ids = isRecord(body) && Array.isArray(body.request_ids) ? body.request_ids : undefined;
    stopAll(controlled, 'abort', ids);
    return { status: 200, body: { status: 'aborted', aborted: ids?.length ?? 0 } };
  },
  'POST /pause': async (controlled, { query }) => {
    const kind = toPauseKind(query.get('mode') ?? 'abort');
    if (!kind) return { status: 400, body: badRequest(badMode(query.get('mode')), 'query.mode') };
    controlled.gate.pause(kind);
    if (kind === 'abort') stopAll(controlled, 'abort');
    if (kind !== 'keep') await controlled.idle();
    return { status: 200, body: { status: 'paused' } };
  },
  'POST /resume': async ({ gate }) => {
    gate.resume();
    return { status: 200, body: { status: 'resumed' } };
  },
  'GET /is_paused': async ({ gate }) => ({ status: 200, body: { is_paused: gate.isPaused } }),
  'POST /update_weight_version': async (controlled, { body }) => {
    const version = isRecord(body) ? `${body.new_version}` : '';
    controlled.setWeightVersion(version);
    return { status: 200, body: { success: true, new_version: version } };
  },
  'GET /weight_info': async ({ weightVersion }) => ({ status: 200, body: { weight_version: weightVersion } }),
  'POST /reset_prefix_cache': async () => ({ status: 200, body: { success: true } }),
  'GET /get_world_size': async () => ({ status: 200, body: { world_size: 1 } }),
  'GET /is_sleeping': async () => ({ status: 200, body: { is_sleeping: false } }),
  'POST /collective_rpc': async (_, { body }) => {
    const method = isRecord(body) ? body.method : undefined;
    if (method === 'reload_weights') return { status: 200, body: { results: [null] } };
    const message = `Call to collective_rpc method failed: Worker failed with error ''CPUWorker' object has no attribute '${method}'', please check the stack trace above for the root cause`;
    return { status: 500, body: toVllmError(500, message), isUncaught: true };
  },
};

export const sglangRoutes: Readonly<Record<string, ControlRoute>> = {
  'POST /abort_request': async (controlled, { body }) => {
    if (isRecord(body)) stopAll(controlled, 'abort', body.abort_all === true ? undefined : [body.rid]);
    return { status: 200 };
  },
  'POST /pause_generation': async (controlled, { body }) => {
    const kind = isRecord(body) && (body.mode === 'retract' || body.mode === 'in_place') ? 'keep' : 'abort';
    controlled.gate.pause(kind);
    if (kind === 'abort') {
      stopAll(controlled, 'abort');
      await controlled.idle();
    }
    return { status: 200, body: { message: 'FakeGeneration paused successfully.', status: 'ok' } };
  },
  'POST /continue_generation': async ({ gate }) => {
    gate.resume();
    return { status: 200, body: { message: 'FakeGeneration continued successfully.', status: 'ok' } };
  },
  'POST /update_weight_version': async (controlled, { body }) => {
    const version = isRecord(body) ? `${body.new_version}` : '';
    controlled.setWeightVersion(version);
    return { status: 200, body: { success: true, message: `Weight version updated to ${version}`, new_version: version } };
  },
};

/** Ends the generations with these ids, or all that run. */
export function stopAll({ generations }: Pick<Controlled, 'generations'>, end: EarlyEnd, ids?: readonly unknown[]): void {
  for (const generation of generations)
    if (ids ? ids.includes(generation.id) : generation.isRunning || end === 'dead') generation.stop(end);
}

function toPauseKind(mode: string): PauseKind | undefined {
  return mode === 'abort' || mode === 'wait' || mode === 'keep' ? mode : undefined;
}

function badRequest(message: string, param: string | null): Json {
  return { error: { message, type: 'Bad Request', param, code: 400 } };
}

const badMode = (mode: string | null) =>
  `1 validation error:\n  {'type': 'literal_error', 'loc': 'query.mode', 'msg': "Input should be 'abort', 'wait' or 'keep'", 'input': '${mode}', 'ctx': {'expected': "'abort', 'wait' or 'keep'"}}`;
