// The names of spans and of their attributes: those of OpenTelemetry's conventions for generative AI, and the proposed ones for reinforcement
// learning (rl.*). Texts of agents are never part of a span.

import type { SpanAttributes, SpanStart } from '@millrace/base/trace-span';
import type { RolloutResult, Sampling, StageName, ToolCall } from '@millrace/protocol';
import type { ClaimedRollout } from '@millrace/store';
import type { SampledTurn } from './sampled-turn.ts';

export function toRolloutSpan({ id, attempt, submission: { scenario, group, agent }, worker }: ClaimedRollout): SpanStart {
  return {
    name: 'rl.sample',
    attributes: {
      'gen_ai.conversation.id': id,
      'rl.sample.id': id,
      'rl.sample.group.id': group,
      'rl.sample.attempt': attempt,
      'rl.environment.name': scenario,
      'rl.sample.agent.profile': typeof agent === 'object' ? agent.name : agent,
      'rl.worker.id': worker,
    },
  };
}

export function toResultAttributes({ reward, stop_reason, turns, tokens, policy_versions: span, timings }: RolloutResult): SpanAttributes {
  return {
    'rl.reward.score': reward ?? undefined,
    'rl.sample.stop_reason': stop_reason ?? undefined,
    'rl.sample.turns': turns,
    'rl.sample.input_tokens': tokens.prompt + tokens.observation,
    'rl.sample.output_tokens': tokens.sampled,
    'rl.policy.version': span?.last,
    'rl.sample.queue.duration': timings.queued_ms / 1000,
  };
}

const stageNames: Readonly<Record<StageName, string>> = { init: 'rl.sample.init', run: 'rl.sample.run', evaluate: 'rl.reward' };

/** `waitedMs`: for the slot, before the span began. */
export function toStageSpan(stage: StageName, waitedMs: number): SpanStart {
  return { name: stageNames[stage], attributes: { 'rl.stage.name': stage, 'rl.stage.wait.duration': waitedMs / 1000 } };
}

export function toTurnSpan(turn: number): SpanStart {
  return { name: 'rl.sample.turn', attributes: { 'rl.sample.turn.index': turn } };
}

interface TracedCall {
  readonly id: string;
  readonly model?: string;
  readonly url: string;
  readonly dialect: string;
  readonly promptTokens: number;
  readonly sessionId: string;
  readonly sampling: Sampling;
  readonly maxTokens: number;
}

export function toCallSpan({ id, model, url, dialect, promptTokens, sessionId, sampling, maxTokens }: TracedCall): SpanStart {
  const { hostname, port } = new URL(url);
  return {
    name: model === undefined ? 'chat' : `chat ${model}`,
    isCall: true,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': dialect,
      'gen_ai.request.model': model,
      'gen_ai.conversation.id': sessionId,
      'gen_ai.request.max_tokens': maxTokens,
      'gen_ai.request.temperature': sampling.temperature,
      'gen_ai.request.top_p': sampling.top_p,
      'gen_ai.request.top_k': sampling.top_k,
      'gen_ai.request.seed': sampling.seed,
      'gen_ai.request.stop_sequences': sampling.stop,
      'server.address': hostname,
      'server.port': port === '' ? undefined : Number(port),
      'gen_ai.usage.input_tokens': promptTokens,
      'rl.backend.id': id,
    },
  };
}

export function toCallAttributes({ tokenIds, finishReason, cachedTokens, policyVersions, retries }: SampledTurn): SpanAttributes {
  return {
    'gen_ai.usage.output_tokens': tokenIds.length,
    'gen_ai.usage.cache_read.input_tokens': cachedTokens,
    'gen_ai.response.finish_reasons': [finishReason],
    'rl.policy.version': policyVersions.last,
    'rl.sample.retries': retries,
  };
}

export function toToolSpan({ id, name }: Pick<ToolCall, 'id' | 'name'>): SpanStart {
  return {
    name: `execute_tool ${name}`,
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': name,
      'gen_ai.tool.call.id': id,
      'gen_ai.tool.type': 'function',
    },
  };
}
