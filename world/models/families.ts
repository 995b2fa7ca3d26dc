// Two tables of docs/models.md: what is proven of each family of models, and which of our formats reads what each of vLLM's parsers reads.

import { families as parserFamilies } from '../parity/tool-calls/cases.ts';
import type { ProvenTemplate } from './prove-templates.ts';

/** A family and the templates of the collection that are its own. */
const families: readonly (readonly [name: string, templates: RegExp | undefined])[] = [
  ['Qwen2.5', /Qwen2\.5|qwen2_5/],
  ['Qwen3', /Qwen3-0\.6B|npm\/qwen3$/],
  ['Qwen3-Coder', /Qwen3-Coder|qwen3coder/],
  ['Qwen3.5', /Qwen3\.5/],
  ['Llama 3.x', /meta-llama-Llama-3\.\d|llama3\.\d_json|llama3_2/],
  ['Llama 4', /llama4/],
  ['Mistral, Ministral, Devstral', /istral/],
  ['DeepSeek V3.1', /V3\.1|deepseekv31/],
  ['DeepSeek V3.2', /V3\.2/],
  ['DeepSeek V4', /V4/],
  ['DeepSeek R1 and its distilled models', /R1|deepseekr1|deepseek-r1/],
  ['GLM 4.6, 4.7', /GLM-4/],
  ['Kimi K2', /Kimi-K2/],
  ['Kimi K3', /Kimi-K3/],
  ['MiniMax M2', /MiniMax-M2/],
  ['MiniMax M3', /MiniMax-M3/],
  ['gpt-oss', /gpt-oss/],
  ['Gemma 3', /gemma3/],
  ['Gemma 4', /gemma-?4/],
  ['Nemotron', /Nemotron/],
  ['Granite', /granite/],
  ['Hermes', /Hermes|template_hermes/],
  ['Phi-4', /phi4/],
  ['SmolLM2', undefined],
  ['SmolLM3', /SmolLM3/],
  ['LFM2', /LFM2/],
  ['Seed-OSS', /Seed-OSS/],
  ['Command', /ommand|Cohere/],
  ['Hunyuan 3', /Hy3/],
  ['ERNIE 4.5', undefined],
  ['LongCat', undefined],
  ['PLaMo 3', undefined],
  ['Inkling', undefined],
  ['K2 Horizon', undefined],
  ['Hunyuan 4', undefined],
  ['dots', undefined],
  ['Step 3', undefined],
  ['DeepSeek V4.1', undefined],
];

export function renderFamilies(rows: readonly ProvenTemplate[]): string {
  const lines = families.map(([name, pattern]) => {
    const own = pattern ? rows.filter((row) => pattern.test(row.name)) : [];
    const proven = own.filter(({ verdict }) => verdict === 'proven');
    const [first] = own;
    if (name === 'SmolLM2')
      return `| ${name} | its own, from a backend | taught: \`hermes\` (\`world/models/model-check.test.ts\`) | not written |`;
    if (!first) return `| ${name} | – | not to be had here | – |`;
    const formats = [...new Set(proven.map(({ toolCalls }) => toolCalls.replace(/^proven: /, '')))];
    const calls = proven.length === 0 ? first.toolCalls : `proven: ${formats.join('; ')}`;
    const reasoning = (proven.length > 0 ? proven : own).some((row) => row.reasoning === 'proven')
      ? 'proven'
      : (proven[0] ?? first).reasoning;
    return `| ${name} | ${proven.length} of ${own.length} | ${calls} | ${reasoning} |`;
  });
  return `| family | templates proven | tool calls | reasoning |\n|---|---|---|---|\n${lines.join('\n')}`;
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
