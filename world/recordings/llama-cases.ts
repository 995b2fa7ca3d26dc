// What is recorded of llama-server, with the prompt and the weights that vLLM gets.

import type { RecordedRequest } from '@millrace/testkit';
import { llamaContextTokens } from '../engines/llama.ts';
import { open, send } from './exchange.ts';
import type { Case } from './vllm-cases.ts';
import { get, nearlyFullPrompt, post, promptIds, unknownId } from './vllm-requests.ts';

/** The fields that the adapter asks for; without them every reply carries the prompt and all settings. */
const fields = ['tokens', 'completion_probabilities', 'stop_type', 'truncated', 'tokens_evaluated', 'tokens_cached', 'timings'];

function complete(changes: Readonly<Record<string, unknown>> = {}): RecordedRequest {
  const sampling = { samplers: ['temperature'], temperature: 0, seed: 1, n_predict: 8 };
  return post('/completion', { prompt: promptIds, ...sampling, n_probs: 1, return_tokens: true, response_fields: fields, ...changes });
}

const one = (name: string, says: string, request: RecordedRequest): Case => ({
  name,
  says,
  run: async ({ url }) => [await send(url, request)],
});

export const llamaGoodCases: readonly Case[] = [
  one('completion-greedy', 'A short greedy reply that ends with its end token.', complete({ n_predict: 16 })),
  one('completion-length', 'Cut at n_predict.', complete({ n_predict: 3 })),
  one('completion-all-fields', 'The whole reply, with prompt and settings.', complete({ n_predict: 1, response_fields: [] })),
  one('completion-stream', 'The same as a stream.', complete({ n_predict: 3, stream: true, response_fields: [] })),
  one('completion-top', 'With the three likeliest tokens of each place.', complete({ n_predict: 1, n_probs: 3 })),
  one('completion-no-probs', 'Without probabilities.', complete({ n_predict: 2, n_probs: 0 })),
  one('completion-model', 'With the name of another model, which it ignores.', complete({ n_predict: 1, model: 'other' })),
];

export const llamaErrorCases: readonly Case[] = [
  one(
    'completion-overlong-prompt',
    'The prompt is longer than the context.',
    complete({ prompt: { $repeat: 28, times: llamaContextTokens + 10 } }),
  ),
  one('completion-overlong-sum', 'The prompt fits, but not with n_predict: cut at the end of the context.', {
    ...complete({ prompt: nearlyFullPrompt, n_predict: 100, ignore_eos: true, n_probs: 0 }),
  }),
  one('completion-bad-type', 'n_predict that is no number.', complete({ n_predict: 'many' })),
  one('completion-empty-prompt', 'No token at all.', complete({ prompt: [] })),
  one('completion-unknown-token', "A token id outside of the model's vocabulary.", complete({ prompt: [...promptIds, unknownId] })),
  one('completion-repeat-last-n', 'A repeat_last_n of -1.', complete({ repeat_last_n: -1 })),
  one('unknown-route', 'A route that there is not.', post('/no-such-route', {})),
  one('v1-twice', 'The address with /v1 where it does not belong.', post('/v1/completion', {})),
  one('not-json', 'A body that is no object.', post('/completion', 'x')),
  {
    name: 'completion-disconnect',
    says: 'The client closes the connection after the second event.',
    async run({ url }) {
      const long = complete({ n_predict: 1500, ignore_eos: true, stream: true, response_fields: [] });
      return [await open(url, long, { leaveAfter: 2 }).done];
    },
  },
];

export const llamaInfoCases: readonly Case[] = [
  one('health', 'The health check.', get('/health')),
  one('models', 'The models.', get('/v1/models')),
  one('tokenize', 'Text to token ids.', post('/tokenize', { content: 'Hello <|im_end|>', parse_special: true, with_pieces: true })),
  one('detokenize', 'Token ids to text.', post('/detokenize', { tokens: promptIds.slice(0, 4) })),
  one('apply-template', 'Messages to text.', post('/apply-template', { messages: [{ role: 'user', content: 'Hello' }] })),
];

/** Ends the engine. At SIGTERM it lets a stream run for up to 30 s before it cuts it, so that the end would depend on the machine. */
export const llamaShutdownCase: Case = {
  name: 'completion-sigkill',
  says: 'SIGKILL while a stream runs.',
  async run(engine) {
    const long = complete({ n_predict: 1500, ignore_eos: true, stream: true, n_probs: 0, response_fields: [] });
    const call = open(engine.url, long);
    await call.begun;
    engine.signal('SIGKILL');
    const last = await call.done;
    await engine.exited();
    const reply = last.reply && { ...last.reply, events: last.reply.events?.slice(0, 2) };
    return [{ ...last, ...(reply ? { reply } : {}) }, await send(engine.url, get('/health'), { sent: 'after the process has ended' })];
  },
};
