// A trajectory in the Agent Trajectory Interchange Format (ATIF): steps with messages, tool calls and their results, and the ids and
// logprobs of each reply. The Python client's `to_atif` writes the same.

import type { Message, RolloutView, TrajectoryView } from '@millrace/protocol';
import { listBranches, type SegmentView } from './tokens.ts';

const schemaVersion = 'ATIF-v1.6';

interface AtifStep {
  step_id: number;
  readonly source: 'system' | 'user' | 'agent';
  readonly message: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly { readonly tool_call_id: string; readonly function_name: string; readonly arguments: object }[];
  observation?: { readonly results: { content: string; source_call_id?: string }[] };
  readonly metrics?: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly prompt_token_ids: readonly number[];
    readonly completion_token_ids: readonly number[];
    readonly logprobs: readonly number[];
  };
}

/** One document for each branch. `version` is Millrace's. */
export function toAtif(rollout: RolloutView, trajectory: TrajectoryView, version: string): Record<string, unknown>[] {
  return [...listBranches(trajectory.segments)].map(([branch, indexes]) => {
    const segments = indexes.flatMap((index) => trajectory.segments[index] ?? []);
    const steps = toSteps(segments);
    const { tools } = trajectory;
    const definitions = tools.map(({ name, description, parameters }) => ({
      type: 'function',
      function: { name, description, parameters },
    }));
    return {
      schema_version: schemaVersion,
      session_id: branch === 0 ? rollout.id : `${rollout.id}:${branch}`,
      agent: {
        name: 'millrace',
        version,
        model_name: trajectory.model,
        ...(tools.length === 0 ? {} : { tool_definitions: definitions }),
      },
      steps,
      final_metrics: {
        total_prompt_tokens: steps.reduce((sum, { metrics }) => sum + (metrics?.prompt_tokens ?? 0), 0),
        total_completion_tokens: segments.reduce((sum, one) => sum + (one.kind === 'sampled' ? one.token_ids.length : 0), 0),
        total_steps: steps.length,
      },
      extra: {
        scenario: rollout.scenario,
        group: rollout.group,
        state: rollout.state,
        reward: rollout.reward,
        stop_reason: rollout.result?.stop_reason ?? null,
        provenances: trajectory.provenances ?? [],
      },
    };
  });
}

function toSteps(segments: readonly SegmentView[]): AtifStep[] {
  const steps: AtifStep[] = [];
  const seen: number[] = [];
  let reply: AtifStep | undefined;
  for (const segment of segments) {
    if (segment.kind === 'sampled') {
      reply = toReply(segment, seen);
      steps.push(reply);
    } else {
      for (const message of segment.messages) {
        if (message.role === 'tool' && reply !== undefined) addResult(reply, message);
        else steps.push({ step_id: 0, source: sources[message.role] ?? 'user', message: message.content });
      }
    }
    for (const id of segment.token_ids) seen.push(id);
  }
  for (const [index, step] of steps.entries()) step.step_id = index + 1;
  return steps;
}

const sources: Readonly<Partial<Record<Message['role'], AtifStep['source']>>> = { system: 'system', assistant: 'agent' };

function toReply({ messages, text, token_ids, logprobs }: SegmentView, seen: readonly number[]): AtifStep {
  const calls = messages.flatMap((message) => message.tool_calls ?? []);
  const reasoning = messages.flatMap((message) => message.reasoning ?? []).join('\n');
  return {
    step_id: 0,
    source: 'agent',
    message: messages.length === 0 ? text : messages.map(({ content }) => content).join(''),
    metrics: {
      prompt_tokens: seen.length,
      completion_tokens: token_ids.length,
      prompt_token_ids: [...seen],
      completion_token_ids: token_ids,
      logprobs,
    },
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0
      ? {}
      : { tool_calls: calls.map((call) => ({ tool_call_id: call.id, function_name: call.name, arguments: call.arguments })) }),
  };
}

/** The format does not allow a result of a call that its step does not contain. */
function addResult(reply: AtifStep, { content, tool_call_id: id }: Message): void {
  reply.observation ??= { results: [] };
  const isOwn = reply.tool_calls?.some((call) => call.tool_call_id === id) ?? false;
  reply.observation.results.push(isOwn && id !== undefined ? { content, source_call_id: id } : { content });
}
