// How tokens are sampled, as a caller writes it. A field that changes nothing is sent with its default; one that a backend cannot honour
// refuses the call and is never dropped.

import { z } from 'zod';

const structuredOutputs = z
  .strictObject({
    json: z.record(z.string(), z.unknown()).optional().describe('A JSON Schema.'),
    regex: z.string().min(1).optional(),
    choice: z.array(z.string().min(1)).min(1).max(1024).optional().describe('The turn is exactly one of these texts.'),
    grammar: z.string().min(1).optional().describe('A grammar in GBNF, whose first rule is `root`.'),
  })
  .refine((given) => Object.values(given).filter((one) => one !== undefined).length === 1, {
    error: 'expected exactly one of json, regex, choice and grammar',
  });

export const sampling = z
  .strictObject({
    temperature: z
      .number()
      .min(0)
      .max(2)
      .refine((value) => value <= 0 || value >= 0.01, 'Too small: expected 0 or a number from 0.01')
      .default(1)
      .describe('Softmax temperature; 0 is greedy. vLLM raises values between 0 and 0.01 and refuses values above 2, so both are refused.'),
    top_p: z.number().gt(0).max(1).default(1),
    top_k: z.int().min(0).default(0).describe('0 disables it.'),
    min_p: z.number().min(0).max(1).default(0),
    repetition_penalty: z.number().gt(0).max(2).default(1).describe('1 disables it. SGLang refuses values above 2.'),
    presence_penalty: z.number().min(-2).max(2).default(0),
    frequency_penalty: z.number().min(-2).max(2).default(0),
    max_tokens: z.int().min(1).max(1_000_000).default(4096).describe('The maximum number of tokens per turn.'),
    seed: z.int().min(0).optional(),
    stop: z
      .array(z.string().min(1).max(1024))
      .max(64)
      .optional()
      .describe('A turn ends when its text has one of these. Its tokens stay in the trajectory, as they were sampled.'),
    stop_token_ids: z
      .array(z.int().min(0).max(0x7fff_ffff))
      .max(1024)
      .optional()
      .describe('Tokens that end a turn, besides those of the model.'),
    include_stop_str_in_output: z
      .boolean()
      .optional()
      .describe('Whether the text that the scenario reads has what stopped the turn. It changes no token. Default: false.'),
    min_tokens: z
      .int()
      .min(0)
      .max(1_000_000)
      .optional()
      .describe('The minimum number of tokens per turn: before it, tokens that end a turn have no probability. Default: 0.'),
    logit_bias: z
      .record(z.string().regex(/^(0|[1-9]\d{0,9})$/, 'Invalid token id'), z.number().min(-100).max(100))
      .refine((biases) => Object.keys(biases).length <= 1024, 'Too big: expected at most 1024 token ids')
      .optional()
      .describe('What is added to the logits of these token ids.'),
    structured_outputs: structuredOutputs
      .optional()
      .describe('What the text of a turn must match: one of `json`, `regex`, `choice` and `grammar`.'),
    routed_experts: z
      .boolean()
      .optional()
      .describe('Record which experts each token was routed to. Needs vLLM or SGLang, started with routed experts enabled.'),
    sampling_mask: z
      .boolean()
      .optional()
      .describe(
        'Record which tokens each token was sampled from. Needs `top_k` of at least 1 and `temperature` above 0, and SGLang, or vLLM started with --return-sampling-mask.',
      ),
  })
  .refine(({ sampling_mask, top_k }) => !sampling_mask || top_k > 0, {
    path: ['top_k'],
    error: 'must be at least 1 with sampling_mask: it bounds the size of the masks',
  })
  .refine(({ sampling_mask, temperature }) => !sampling_mask || temperature > 0, {
    path: ['temperature'],
    error: 'must be above 0 with sampling_mask: greedy sampling has no mask',
  })
  .refine(({ min_tokens = 0, max_tokens }) => min_tokens <= max_tokens, { path: ['min_tokens'], error: 'must not be above max_tokens' })
  .describe('Sampling parameters. Every field that is set or has a default is sent to the backend.');
export type Sampling = z.infer<typeof sampling>;
/** As a caller writes them: every field is optional. */
export type SamplingInput = z.input<typeof sampling>;
