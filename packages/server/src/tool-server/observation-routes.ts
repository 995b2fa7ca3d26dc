// VeRL-Tool's protocol: `POST /get_observation` runs the actions of trajectories, each in the sandbox of its trajectory, and returns what its
// agent reads next. A trajectory that is finished, or at its last step, loses its sandbox.

import { messageOf } from '@millrace/protocol';
import type { Sandbox } from '@millrace/sandbox';
import { renderPythonResult, renderShellResult } from '@millrace/scenarios';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { check } from '../http/request/check.ts';
import { frameObservation, parseAction, type ToolAction, toolNames } from './parse-action.ts';
import type { ToolAppOptions } from './tool-options.ts';

/** What the agent reads of one action at most. */
const capBytes = 32 * 1024;

const name = z.string().min(1).max(500);
/** Loose, as VeRL-Tool's own: its clients send what their dataset has. */
const actionRequest = z
  .looseObject({
    trajectory_ids: z.array(name).min(1).max(1000),
    actions: z.array(z.string()).min(1),
    extra_fields: z.array(z.looseObject({ sandbox_image: z.string().min(1).optional() })).nullish(),
    finish: z.array(z.boolean()).nullish(),
    is_last_step: z.array(z.boolean()).nullish(),
  })
  .superRefine((given, context) => {
    for (const field of ['actions', 'extra_fields', 'finish', 'is_last_step'] as const) {
      const [count, wanted] = [given[field]?.length, given.trajectory_ids.length];
      if (count !== undefined && count !== wanted)
        context.addIssue({ code: 'custom', path: [field], message: `${count} for ${wanted} trajectory_ids` });
    }
  });

interface ToolStep {
  readonly trajectory: string;
  readonly action: string;
  readonly image: string | undefined;
  readonly isFinished: boolean;
  readonly isLast: boolean;
}

interface ToolOutcome {
  readonly observation: string | Readonly<Record<string, unknown>>;
  readonly done: boolean;
  readonly valid: boolean;
}

export function mountObservations(app: FastifyInstance, options: ToolAppOptions): void {
  const { clock, sandboxes } = options;
  const startMs = clock.monotonic();
  let running = 0;
  app.post('/get_observation', async ({ body }) => {
    const given = await check(actionRequest, body);
    const beginMs = clock.monotonic();
    running += 1;
    try {
      const outcomes = await Promise.all(toSteps(given).map((step) => runStep(step, options)));
      return {
        observations: outcomes.map(({ observation }) => observation),
        dones: outcomes.map(({ done }) => done),
        valids: outcomes.map(({ valid }) => valid),
        processing_time_ms: clock.monotonic() - beginMs,
        queue_time_ms: 0,
      };
    } finally {
      running -= 1;
    }
  });
  app.get('/health', async () => ({
    status: 'healthy',
    concurrent_requests: running,
    thread_pool_size: 0,
    active_tasks: sandboxes.count,
    max_concurrent: sandboxes.most,
    tools: toolNames,
    uptime_seconds: (clock.monotonic() - startMs) / 1000,
  }));
}

function toSteps({ trajectory_ids, actions, extra_fields, finish, is_last_step }: z.infer<typeof actionRequest>): ToolStep[] {
  return trajectory_ids.map((trajectory, index) => ({
    trajectory,
    action: actions[index] ?? '',
    image: extra_fields?.[index]?.sandbox_image,
    isFinished: finish?.[index] ?? false,
    isLast: is_last_step?.[index] ?? false,
  }));
}

async function runStep(step: ToolStep, options: ToolAppOptions): Promise<ToolOutcome> {
  const { trajectory, action, isFinished, isLast } = step;
  try {
    if (isFinished) return { observation: '', done: true, valid: true };
    const parsed = parseAction(action);
    if (parsed === undefined) return { observation: describeInvalid, done: false, valid: false };
    return await runAction(step, parsed, options);
  } finally {
    if (isFinished || isLast) await options.sandboxes.close(trajectory);
  }
}

const describeInvalid = {
  obs: '',
  invalid_reason: 'no action was found: expected <bash>…</bash>, <python>…</python>, a fenced block of bash or python, or a tool call',
  available_tools: toolNames,
};

/** A sandbox that cannot be opened, or dies, ends the trajectory with an error, which is not an observation to learn from. */
async function runAction({ trajectory, action, image }: ToolStep, parsed: ToolAction, options: ToolAppOptions): Promise<ToolOutcome> {
  const spec = image === undefined ? {} : { image };
  try {
    const output = await options.sandboxes.use(trajectory, spec, (sandbox) => runTool(sandbox, parsed, options.timeoutMs));
    return { observation: frameObservation(action, output), done: false, valid: true };
  } catch (error) {
    options.log.warn('tool-action-failed', { name: trajectory, error: messageOf(error) });
    return { observation: { obs: '', error: messageOf(error) }, done: true, valid: false };
  }
}

async function runTool(sandbox: Sandbox, { tool, code }: ToolAction, timeoutMs: number): Promise<string> {
  return tool === 'bash'
    ? renderShellResult(await sandbox.runShell(code, { timeoutMs, capBytes }), timeoutMs)
    : renderPythonResult(await sandbox.runPython(code, { timeoutMs, capBytes }), timeoutMs);
}
