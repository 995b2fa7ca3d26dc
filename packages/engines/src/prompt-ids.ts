// The servers that ProRL Agent's trainers start themselves: `POST /generate {prompt_ids, …}` answers `{response_ids, logprobs}` and
// nothing else. Its parameters are those of vLLM's SamplingParams, which refuses any other name.

import { definedOf, RolloutError } from '@millrace/protocol';
import { z } from 'zod';
import type { GenerateRequest } from './backend.ts';
import { promptIdsPath } from './calls/server-health.ts';
import { minTokensOf, plainFields, refuseFields } from './params/sampling-fields.ts';
import { array, parseReply, type TokenRoute, toGeneration } from './wire.ts';

const server = 'a server with only POST /generate {prompt_ids}';
const promptIdsReply = z.looseObject({ response_ids: array, logprobs: array.nullish() });

export const promptIdsRoute: TokenRoute = {
  path: promptIdsPath,
  around(request) {
    const { sampling, adapter } = request;
    if (sampling.routed_experts || sampling.sampling_mask)
      throw new RolloutError('backend-refused', `${server} reports no routed experts and no sampling masks`);
    refuseFields(sampling, server, {
      stop: 'its reply does not say why a turn ended',
      logit_bias: 'it cannot be sent there',
      structured_outputs: 'it cannot be sent there',
    });
    if (adapter !== undefined) throw new RolloutError('backend-failed', `${server} cannot select the LoRA adapter ${adapter}`);
    return { head: '{"prompt_ids":[', tail: `],${JSON.stringify(samplingParams(request)).slice(1)}` };
  },
  parse(text, request) {
    const { response_ids: tokenIds, logprobs } = parseReply(promptIdsReply, text);
    // The reply does not say why it ended. A turn without an end token was cut.
    const isEnded = tokenIds.some((id) => typeof id === 'number' && request.stopTokenIds.includes(id));
    return toGeneration(request, { tokenIds, logprobs: logprobs ?? [], finishReason: isEnded ? 'stop' : 'length' });
  },
};

/** A top_k of 0 is an error in older versions of vLLM, so it is left out, which means the same. */
function samplingParams({ sampling, maxTokens, stopTokenIds }: GenerateRequest): Record<string, unknown> {
  const { seed, top_k } = sampling;
  return {
    ...plainFields(sampling),
    min_tokens: minTokensOf({ sampling, maxTokens }),
    ...definedOf({ seed, top_k: top_k > 0 ? top_k : undefined }),
    max_tokens: maxTokens,
    stop_token_ids: stopTokenIds,
    ignore_eos: false,
    skip_special_tokens: false,
  };
}
