// Two tables of docs/models.md: what is proven of each family of models, and which of our formats reads what each of vLLM's parsers reads.

import { families as parserFamilies } from '../parity/tool-calls/cases.ts';
import type { ProvenTemplate } from './prove-templates.ts';

interface PublishedFamily {
  readonly name: string;
  /** Its own templates in the collection. */
  readonly templates?: RegExp;
  /** Published tokenizers with its vocabulary. */
  readonly tokenizers?: readonly string[];
}

const families: readonly PublishedFamily[] = [
  { name: 'Qwen2.5', templates: /Qwen2\.5|qwen2_5/, tokenizers: ['npm/qwen2_5'] },
  { name: 'Qwen3', templates: /Qwen3-0\.6B|npm\/qwen3$/, tokenizers: ['npm/qwen3'] },
  { name: 'Qwen3-Coder', templates: /Qwen3-Coder|qwen3coder/, tokenizers: ['npm/qwen3'] },
  { name: 'Qwen3.5', templates: /Qwen3\.5/, tokenizers: ['llama.cpp/qwen35'] },
  { name: 'Llama 3.x', templates: /meta-llama-Llama-3\.\d|llama3\.\d_json|llama3_2/, tokenizers: ['npm/llama3_1', 'npm/llama3_2'] },
  { name: 'Llama 4', templates: /llama4/ },
  { name: 'Mistral, Ministral, Devstral', templates: /istral/, tokenizers: ['npm/mistral_nemo', 'mistral-common/tekken_240911'] },
  { name: 'DeepSeek V3.1', templates: /V3\.1|deepseekv31/, tokenizers: ['npm/deepseek_v3'] },
  { name: 'DeepSeek V3.2', templates: /V3\.2/, tokenizers: ['npm/deepseek_v3'] },
  { name: 'DeepSeek V4', templates: /V4/ },
  { name: 'DeepSeek R1 and its distilled models', templates: /R1|deepseekr1|deepseek-r1/, tokenizers: ['npm/deepseek_v3'] },
  { name: 'GLM 4.6, 4.7', templates: /GLM-4/ },
  { name: 'Kimi K2', templates: /Kimi-K2/ },
  { name: 'Kimi K3', templates: /Kimi-K3/ },
  { name: 'MiniMax M2', templates: /MiniMax-M2/ },
  { name: 'MiniMax M3', templates: /MiniMax-M3/ },
  { name: 'gpt-oss', templates: /gpt-oss/ },
  { name: 'Gemma 3', templates: /gemma3/, tokenizers: ['npm/gemma3'] },
  { name: 'Gemma 4', templates: /gemma-?4/, tokenizers: ['llama.cpp/gemma-4'] },
  { name: 'Nemotron', templates: /Nemotron/ },
  { name: 'Granite', templates: /granite/ },
  { name: 'Hermes', templates: /Hermes|template_hermes/, tokenizers: ['npm/llama3', 'npm/llama3_1'] },
  { name: 'Phi-4', templates: /phi4/ },
  { name: 'SmolLM2', tokenizers: ['SmolLM2'] },
  { name: 'SmolLM3', templates: /SmolLM3/, tokenizers: ['npm/llama3_2'] },
  { name: 'LFM2', templates: /LFM2/ },
  { name: 'Seed-OSS', templates: /Seed-OSS/ },
  { name: 'Command', templates: /ommand|Cohere/, tokenizers: ['npm/command_r_plus', 'llama.cpp/command-r'] },
  { name: 'Hunyuan 3', templates: /Hy3/ },
  ...['ERNIE 4.5', 'LongCat', 'PLaMo 3', 'Inkling', 'K2 Horizon', 'Hunyuan 4', 'dots', 'Step 3', 'DeepSeek V4.1'].map((name) => ({ name })),
];

const nowhere = 'not published';

/** `tokenizers` has a verdict for each name of `familyTokenizers`. */
export function renderFamilies(rows: readonly ProvenTemplate[], tokenizers: ReadonlyMap<string, string>): string {
  const lines = families.map(({ name, templates, tokenizers: names = [] }) => {
    const tokenizer = joinVerdicts(names.map((one) => tokenizers.get(one) ?? nowhere));
    if (name === 'SmolLM2')
      return `| ${name} | its own, from a backend | ${tokenizer} | taught: \`hermes\` (\`world/models/model-check.test.ts\`) | not written |`;
    const own = templates ? rows.filter((row) => templates.test(row.name)) : [];
    const [first] = own;
    if (!first) return `| ${name} | ${nowhere} | ${tokenizer} | ${nowhere} | ${nowhere} |`;
    return `| ${name} | ${describeTemplates(own, first)} | ${tokenizer} | ${describeCalls(own, first)} | ${describeReasoning(own, first)} |`;
  });
  return `| family | template | tokenizer | tool calls | reasoning |\n|---|---|---|---|---|\n${lines.join('\n')}`;
}

/** The published tokenizers that stand for a family. */
export const familyTokenizers: ReadonlySet<string> = new Set(families.flatMap(({ tokenizers = [] }) => tokenizers));

function joinVerdicts(verdicts: readonly string[]): string {
  return verdicts.length === 0 ? nowhere : [...new Set(verdicts)].join('; ');
}

const isProven = ({ verdict }: ProvenTemplate) => verdict === 'proven';

/** A template that is taught or declares its tools can be continued exactly as well. */
function describeTemplates(own: readonly ProvenTemplate[], first: ProvenTemplate): string {
  const usable = own.filter(({ verdict }) => !verdict.startsWith('refused'));
  return usable.length === 0 ? first.toolCalls : `proven: ${usable.length} of ${own.length}`;
}

function describeCalls(own: readonly ProvenTemplate[], first: ProvenTemplate): string {
  const formats = new Set(own.filter(isProven).map(({ toolCalls }) => toolCalls.replace(/^proven: /, '')));
  const usable = own.find(({ verdict }) => !verdict.startsWith('refused')) ?? first;
  return formats.size > 0 ? `proven: ${[...formats].join('; ')}` : usable.toolCalls;
}

function describeReasoning(own: readonly ProvenTemplate[], first: ProvenTemplate): string {
  const proven = own.filter(isProven);
  if ((proven.length > 0 ? proven : own).some(({ reasoning }) => reasoning === 'proven')) return 'proven';
  return (proven[0] ?? first).reasoning;
}

/** Parsers of vLLM that read the same as another one, and the one that has no format. */
const others: readonly (readonly [string, string])[] = [
  ['qwen3_xml', '`qwen3-coder`'],
  ['qwen3_json', '`hermes`'],
  ['llama4_json', '`llama3-json`'],
  ['cohere_command4', '`cohere`'],
  ['hf', 'refused: it has no format, but reads a description that a tokenizer may bring along'],
];

export function renderVllmParsers(): string {
  const compared = [...new Map(parserFamilies.map(({ tool, ours }) => [tool, `\`${ours}\``]))];
  const lines = [...compared, ...others].sort(([a], [b]) => a.localeCompare(b)).map(([tool, ours]) => `| ${tool} | ${ours} |`);
  return `| vLLM's parser | our format |\n|---|---|\n${lines.join('\n')}`;
}
