// What `millrace model check` reports: the profile of a model, how it was proven, and what its template does not support.

import { type ModelConfig, modelConfig } from './model-config.ts';
import type { ModelProfile, ProfileCheck } from './model-profile.ts';
import { openModel } from './open-model.ts';

export interface ModelReport {
  readonly model: string;
  readonly tool_parser: string;
  readonly tool_calls: ModelProfile['toolCalls'];
  readonly reasoning: ModelProfile['reasoning'];
  /** What ends a turn. */
  readonly end_of_turn: {
    readonly text: string;
    readonly token_ids: readonly number[];
    /** Whether the first token of the next message ends a turn. */
    readonly is_shared: boolean;
  };
  readonly stop_token_ids: readonly number[];
  readonly warnings: readonly string[];
  readonly checks: readonly ProfileCheck[];
}

/** Throws an Error that says what is missing or cannot be used, and what to do. */
export async function reportModel(options: Partial<ModelConfig> & { readonly tokenizer: string }): Promise<ModelReport> {
  const { profile, endOfTurn, stopTokenIds, warnings } = await openModel(modelConfig.parse(options));
  return {
    model: options.tokenizer,
    tool_parser: profile.parser.name,
    tool_calls: profile.toolCalls,
    reasoning: profile.reasoning,
    end_of_turn: { text: endOfTurn.text, token_ids: endOfTurn.ids, is_shared: endOfTurn.isShared },
    stop_token_ids: stopTokenIds,
    warnings,
    checks: profile.checks,
  };
}
