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
  return 'it was not possible to find out yet: the policy was paused, or the server did not answer. It is asked again; or give logprobs_mode when the backend joins';
}

/** Why this backend's logprobs are not those of the distribution that was sampled from; undefined if they are. */
export function findLogprobsDoubt(record: Convention, sampling: Sampling): string | undefined {
  const mode = logprobsOf(record);
  const changes = findChanges(sampling);
  const unseen = mode === 'processed' ? (record.dialect === 'sglang' ? changes.cuts : []) : [...changes.scales, ...changes.cuts];
  if (unseen.length === 0) return undefined;
  const fields = unseen.join(', ');
  if (mode === 'unknown')
    return `sampled with ${fields}, and it is unknown whether the logprobs show it; join the backend with logprobs_mode`;
  const advice = record.dialect.startsWith('vllm') ? '; start vLLM with --logprobs-mode processed_logprobs' : '';
  return `sampled with ${fields}, which the logprobs do not show${advice}`;
}

/** The fields that change the model's own distribution: those that reshape it, and those that truncate it. */
function findChanges(sampling: Sampling): { readonly scales: string[]; readonly cuts: string[] } {
  const { temperature, repetition_penalty, presence_penalty, frequency_penalty, top_p, top_k, min_p } = sampling;
  const named = (fields: Record<string, boolean>) => Object.keys(fields).filter((name) => fields[name]);
  return {
    scales: named({
      temperature: temperature !== 1,
      repetition_penalty: repetition_penalty !== 1,
      presence_penalty: presence_penalty !== 0,
      frequency_penalty: frequency_penalty !== 0,
    }),
    cuts: named({ top_p: top_p < 1, top_k: top_k > 0, min_p: min_p > 0 }),
  };
}
