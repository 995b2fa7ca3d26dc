// Which share of the tokens stays trainable when the model reasons in every turn: with the history that the chat template wants, with all
// reasoning kept, and with the history rendered again after the last turn, as services do that keep only messages.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { appendNext, Ledger, type LocalConversation, openConversation, renderResults, runSteps } from '@millrace/model';
import { backendId, limits, type Message, type ToolSpec, trainableShare } from '@millrace/protocol';
import { makeRandom, makeTempFolder, qwen3Folder } from '@millrace/testkit';
import type { BenchReport, BenchRow } from '../report/report.ts';

const turns = 8;
const words = { reasoning: 150, content: 15, result: 100 };
const tools: readonly ToolSpec[] = [{ name: 'bash', description: 'Runs a command.', parameters: { type: 'object', properties: {} } }];

/** ChatML with tools, without the reasoning of earlier turns, as in the template of QwQ. */
const droppingTemplate = `{%- for message in messages %}
{%- if message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' + message.content.split('</think>')[-1].lstrip('\\n') }}
{%- for call in message.tool_calls or [] %}{{- '\\n<tool_call>\\n' + (call.function | tojson) + '\\n</tool_call>' }}{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- else %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}`;

export async function runReasoningBench(): Promise<BenchReport> {
  await using folder = await makeTempFolder('reasoning');
  const chatTemplate = join(folder.path, 'dropping.jinja');
  await writeFile(chatTemplate, droppingTemplate);
  const rows: BenchRow[] = [];
  for (const [name, options] of [
    ['Qwen3', {}],
    ['a template that drops earlier reasoning', { chatTemplate }],
  ] as const) {
    const asTemplate = runConversation(await openConversation(qwen3Folder(), { ...options, reasoning: 'template' }));
    const kept = runConversation(await openConversation(qwen3Folder(), { ...options, reasoning: 'keep' }));
    const percent = (share: number) => ({ unit: '%', samples: [100 * share], larger: 'better' as const });
    const base = rows.length;
    rows.push(
      { what: `${name}: sampled tokens that a history rendered again still has`, ...percent(asTemplate.againShare) },
      { what: `${name}: sampled tokens that the trajectory has, trainable`, ...percent(asTemplate.hadShare), against: base },
      { what: `${name}: trainable share of all tokens, reasoning as the template wants it`, ...percent(asTemplate.share) },
      { what: `${name}: trainable share of all tokens, all reasoning kept`, ...percent(kept.share), against: base + 2 },
      { what: `${name}: branches, reasoning as the template wants it`, unit: 'branches', samples: [asTemplate.branches] },
    );
  }
  const note = `One rollout of ${turns} turns, each with ${words.reasoning} words of reasoning, ${words.content} of content, a call, and a result of ${words.result} words. The texts are made up; the tokens are Qwen3's.`;
  return { title: 'Trainable tokens with reasoning', rows, notes: [note] };
}

function runConversation(conversation: LocalConversation) {
  const random = makeRandom(5);
  const say = (count: number) => Array.from({ length: count }, () => vocabulary[Math.floor(random() * vocabulary.length)]).join(' ');
  const ledger = new Ledger();
  ledger.appendPrompt(conversation.openingIds([{ role: 'user', content: say(60) }], tools));
  const all: Message[] = [...ledger.messages];
  let sampled = 0;
  for (let turn = 1; turn <= turns; turn++) {
    const said = sample(ledger, conversation, { reasoning: say(words.reasoning), content: say(words.content), command: say(6) });
    sampled += said.tokens;
    all.push(said.message);
    if (turn === turns) break;
    const result: Message = { role: 'tool', content: say(words.result), tool_call_id: 'call00000', name: 'bash' };
    all.push(result);
    const next = { messages: [result], tools, limits: limits.parse({ max_context_tokens: 100_000 }) };
    const prompt = runSteps(renderResults(ledger, conversation, next));
    if (prompt) appendNext(ledger, conversation, prompt);
  }
  const branches = 1 + Math.max(...ledger.segments.map(({ branch = 0 }) => branch));
  return {
    share: trainableShare(ledger),
    branches,
    againShare: countFound(conversation, ledger, all) / sampled,
    hadShare: countTrainable(ledger) / sampled,
  };
}

function sample(
  ledger: Ledger,
  { tokenizer, endOfTurn }: LocalConversation,
  said: { reasoning: string; content: string; command: string },
) {
  const { reasoning, content, command } = said;
  const call = { id: 'call00000', name: 'bash', arguments: { command } };
  const text = `<think>\n${reasoning}\n</think>\n\n${content}\n<tool_call>\n{"name": "bash", "arguments": {"command": "${command}"}}\n</tool_call>`;
  const tokenIds = Int32Array.from([...tokenizer.encode(text), endOfTurn.id]);
  const message: Message = { role: 'assistant', content, reasoning, tool_calls: [call] };
  const [backend, policyVersions, finishReason] = [backendId.parse('made-up'), { first: 0, last: 0 }, 'stop'] as const;
  ledger.appendSampled({
    tokenIds,
    logprobs: new Float32Array(tokenIds.length),
    text,
    messages: [message],
    backend,
    policyVersions,
    finishReason,
    retries: 0,
  });
  return { message, tokens: tokenIds.length };
}

/** As a trainer sees them: the tokens of all branches whose mask is 1. */
function countTrainable({ segments }: Ledger): number {
  return segments.reduce((sum, { kind, tokenIds }) => sum + (kind === 'sampled' ? tokenIds.length : 0), 0);
}

/** How many of the sampled tokens the whole conversation still has, turn by turn, when a user's message follows it. */
function countFound(conversation: LocalConversation, ledger: Ledger, messages: readonly Message[]): number {
  const again = conversation.openingIds([...messages, { role: 'user', content: 'go on' }], tools).tokenIds.join();
  const pieces = ledger.segments.filter(({ kind }) => kind === 'sampled');
  return pieces.reduce((sum, { tokenIds }) => sum + longestSuffix(tokenIds, again), 0);
}

/** Reasoning comes first in a turn, so what a template drops is a prefix. */
function longestSuffix(tokenIds: Int32Array, again: string): number {
  for (let from = 0; from < tokenIds.length; from++)
    if (again.includes(`,${tokenIds.subarray(from).join()},`)) return tokenIds.length - from;
  return 0;
}

const vocabulary =
  'the a file test value list error line function returns first then check count index loop number empty string path'.split(' ');
