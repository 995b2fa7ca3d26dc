// The settings of the model: its files, its tool-call format, and the variables of its chat template.

import { z } from 'zod';
import { toolParserNames } from './tool-calls/tool-parsers.ts';

const reasoningModes = ['template', 'keep'] as const;

export const modelConfig = z.strictObject({
  tokenizer: z
    .string()
    .min(1)
    .optional()
    .describe(
      "The folder with the model's tokenizer.json and tokenizer_config.json, or the address of a backend whose tokenizer is used over HTTP.",
    ),
  tokenizerApiKey: z.string().min(1).optional().describe('The API key for `tokenizer`, if that is an address.'),
  chatTemplate: z
    .string()
    .min(1)
    .optional()
    .describe('A .jinja file or a tokenizer_config.json with the chat template. Default: the template of `tokenizer`.'),
  toolParser: z
    .enum(toolParserNames)
    .default('auto')
    .describe(
      `The tool-call format of the model: ${toolParserNames.join(', ')}. \`auto\` takes the one that reads what the chat template writes, and refuses a template whose calls none reads.`,
    ),
  teachTools: z
    .boolean()
    .default(true)
    .describe(
      'Whether tools are described in the first message where the chat template declares none. Set it to false for a model that knows its tools without a description.',
    ),
  reasoning: z
    .enum(reasoningModes)
    .default('template')
    .describe(
      'What happens to the reasoning of earlier turns. `template`: where the chat template drops it, a new branch starts without it. `keep`: it stays in the context.',
    ),
  chatTemplateKwargs: z
    .record(z.string(), z.unknown())
    .default({})
    .describe('Variables for the chat template, such as `{"enable_thinking": false}`.'),
});
export type ModelConfig = z.infer<typeof modelConfig>;
