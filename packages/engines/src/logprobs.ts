// Whether a backend's logprobs are raw or processed, and whether a trainer can use them as the policy's own. Two dialects always do the
// same; of vLLM, it is found out when a backend joins, or the operator declares it.

import type { LogprobsMode, Sampling } from '@millrace/protocol';
import type { BackendRecord } from './backend.ts';

type Convention = Pick<BackendRecord, 'dialect' | 'logprobsMode' | 'probe'>;

/**
 * As its server reports it, else as declared in the record. SGLang scales by temperature unless it was started with
 * SGLANG_RETURN_ORIGINAL_LOGPROB; llama.cpp takes the logits before any sampler.
 */
export function logprobsOf(record: Convention): LogprobsMode {
  const { dialect, probe } = record;
  const logprobsMode = declaredOf(record);
  if (dialect === 'llamacpp') return 'raw';
  if (probe?.logprobsMode !== undefined) return probe.logprobsMode;
  return logprobsMode === 'unknown' && dialect === 'sglang' ? 'processed' : logprobsMode;
}

/** Of the server that joined. Of a vLLM that has taken its place it says nothing: that one shows its mode itself. */
function declaredOf({ dialect, probe, logprobsMode = 'unknown' }: Convention): LogprobsMode {
  return probe?.isReplaced && dialect.startsWith('vllm') ? 'unknown' : logprobsMode;
}

/** How the mode is known, or what to do so that it is. */
export function explainLogprobs(record: Convention): string {
  const { dialect, probe } = record;
  const logprobsMode = declaredOf(record);
  if (dialect === 'llamacpp') return 'llama.cpp reports them before any sampler';
  if (probe?.logprobsMode !== undefined) {
    const isOther = logprobsMode !== 'unknown' && logprobsMode !== probe.logprobsMode;
    return `its server returns ${probe.logprobsMode} logprobs${isOther ? `, not ${logprobsMode} as given when it joined` : ''}`;
  }
  if (logprobsMode !== 'unknown') return 'as given when it joined';
  if (dialect === 'sglang') return 'SGLang scales them by temperature, unless it was started with SGLANG_RETURN_ORIGINAL_LOGPROB';
  const why = probe?.logprobsReason ?? 'its server has not answered yet';
  return `it is not known yet: ${why}. It is asked again; or give logprobs_mode when the backend joins`;
}

/** Why this backend's logprobs are not those of the distribution that was sampled from; undefined if they are. */
export function findLogprobsDoubt(record: Convention, sampling: Sampling): string | undefined {
  const unseen = findUnseen(record, sampling);
  if (unseen?.length === 0) return undefined;
  if (unseen === undefined) {
    const fields = findChanges(sampling).map(({ name }) => name);
    return `sampled with ${fields.join(', ')}, and it is unknown whether the logprobs show it; join the backend with logprobs_mode`;
  }
  const advice = record.dialect.startsWith('vllm') ? '; start vLLM with --logprobs-mode processed_logprobs' : '';
  return `sampled with ${unseen.join(', ')}, which the logprobs do not show${advice}`;
}

/** The fields that changed the distribution and that the logprobs do not show; undefined if that is unknown. */
export function findUnseen(record: Convention, sampling: Sampling): string[] | undefined {
  const mode = logprobsOf(record);
  const changes = findChanges(sampling);
  if (mode === 'unknown' && changes.length > 0) return undefined;
  return changes.filter(({ kind }) => !isSeen(kind, record.dialect, mode)).map(({ name }) => name);
}

/**
 * - scale: reshapes the distribution
 * - cut: removes the unlikely tokens, after everything else
 * - bias: changes the logits of some tokens, or removes them
 * - grammar: removes the tokens that would not match
 */
type ChangeKind = 'scale' | 'cut' | 'bias' | 'grammar';

/**
 * vLLM masks by grammar before it takes the logprobs of either mode. SGLang biases and masks before it takes them, and cuts after;
 * its raw ones, if it was started to return them, lack only what its processed ones have besides. llama.cpp takes the model's own.
 */
function isSeen(kind: ChangeKind, dialect: BackendRecord['dialect'], mode: LogprobsMode): boolean {
  if (dialect === 'llamacpp') return false;
  if (dialect === 'sglang') return kind === 'bias' || kind === 'grammar' || (kind === 'scale' && mode === 'processed');
  return mode === 'processed' || kind === 'grammar';
}

/** The fields that change the model's own distribution. `stop` and `stop_token_ids` only end a turn, and change no probability. */
function findChanges(sampling: Sampling): { readonly name: string; readonly kind: ChangeKind }[] {
  const { temperature, repetition_penalty, presence_penalty, frequency_penalty, top_p, top_k, min_p } = sampling;
  const { min_tokens = 0, logit_bias = {}, structured_outputs } = sampling;
  const all: readonly (readonly [string, ChangeKind, boolean])[] = [
    ['temperature', 'scale', temperature !== 1],
    ['repetition_penalty', 'scale', repetition_penalty !== 1],
    ['presence_penalty', 'scale', presence_penalty !== 0],
    ['frequency_penalty', 'scale', frequency_penalty !== 0],
    ['min_tokens', 'bias', min_tokens > 0],
    ['logit_bias', 'bias', Object.values(logit_bias).some((bias) => bias !== 0)],
    ['structured_outputs', 'grammar', structured_outputs !== undefined],
    ['top_p', 'cut', top_p < 1],
    ['top_k', 'cut', top_k > 0],
    ['min_p', 'cut', min_p > 0],
  ];
  return all.filter(([, , isSet]) => isSet).map(([name, kind]) => ({ name, kind }));
}
