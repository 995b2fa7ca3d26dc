// What can be set about the model: its files, how it writes tool calls, and the variables of its chat template.

import { z } from 'zod';
import { toolParserNames } from './tool-calls/tool-parsers.ts';

export const modelConfig = z.strictObject({
  tokenizer: z
    .string()
    .min(1)
    .optional()
    .describe(
      "The folder with the model's tokenizer.json and tokenizer_config.json, or the address of a backend whose own tokenizer is asked.",
    ),
  tokenizerApiKey: z.string().min(1).optional().describe('The key for `tokenizer`, where that is an address.'),
  chatTemplate: z
    .string()
    .min(1)
    .optional()
    .describe('A .jinja file, or a tokenizer_config.json, with the chat template; otherwise it comes from `tokenizer`.'),
  toolParser: z
    .enum(toolParserNames)
    .default('hermes')
    .describe(`How the model writes tool calls: ${toolParserNames.join(', ')}; \`auto\` guesses from the chat template.`),
  chatTemplateKwargs: z
    .record(z.string(), z.unknown())
    .default({})
    .describe('Variables for the chat template, such as `{"enable_thinking": false}`.'),
});
export type ModelConfig = z.infer<typeof modelConfig>;
