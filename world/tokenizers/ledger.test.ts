// The ledger over model families, with published tokenizers and templates: where a template is append-only, the ids that the ledger joins turn
// by turn are those of the whole conversation; where it is not, a new branch starts, and every sampled token stays trainable in the old one.

import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Message } from '@millrace/protocol';
import { type LocalConversation, openConversation, runSteps } from '@millrace/server';
import { appendDelta, renderWithoutReasoning } from '../../packages/server/src/trajectory/branch.ts';
import { Ledger } from '../../packages/server/src/trajectory/ledger.ts';
import { alphabet, makeSampled, makeText } from '../../packages/server/test/trajectory/random-text.ts';
import { worldCacheFolder } from '../engines/world-cache.ts';
import { skipWithoutTokenizers, tokenizersFolder } from './collection.ts';
import { makeRandom } from './texts.ts';

const templates = join(worldCacheFolder(), 'models/llama-cpp-python');

/** A published tokenizer, with its own template or one of llama.cpp's collection. */
const families: readonly (readonly [tokenizer: string, template?: string])[] = [
  ['qwen1_5'],
  ['qwen2_5'],
  ['qwen3'],
  ['llama3'],
  ['llama3_1'],
  ['llama3_2'],
  ['mistral_nemo'],
  ['gemma2'],
  ['gemma3'],
  ['qwen3', 'Qwen-QwQ-32B'],
  ['qwen3', 'Qwen3-Coder'],
  ['deepseek_v3', 'deepseek-ai-DeepSeek-V3.1'],
  ['deepseek_v3', 'deepseek-ai-DeepSeek-V3.2'],
  ['gemma2', 'google-gemma-2-2b-it'],
  ['llama3_1', 'meta-llama-Llama-3.3-70B-Instruct'],
];

interface LedgerRow {
  readonly name: string;
  readonly verdict:
    | 'append-only'
    | 'branches'
    | 'kept as sampled: the generation prompt writes reasoning that a history has not'
    | `refused: ${string}`;
  readonly sampled: number;
  /** Of all sampled tokens, those that the last branch alone still has as sampled. */
  readonly keptByLast: number;
}

test('the ledger holds the ids of the whole conversation, or starts a branch', {
  skip: skipWithoutTokenizers(),
  timeout: 600_000,
}, async () => {
  const rows: LedgerRow[] = [];
  for (const [tokenizer, template] of families) rows.push(await runFamily(tokenizer, template));
  for (const { name, verdict, sampled, keptByLast } of rows) {
    const share =
      verdict === 'branches'
        ? `: ${Math.round((100 * keptByLast) / sampled)} % of the sampled tokens are trainable in the last branch alone, all of them in all branches`
        : '';
    console.log(`${name}: ${verdict}${share}`);
  }
  assert.ok(rows.filter(({ verdict }) => verdict === 'append-only' || verdict === 'branches').length >= 10);
});

async function runFamily(tokenizer: string, template?: string): Promise<LedgerRow> {
  const name = template === undefined ? tokenizer : `${tokenizer} with ${template}`;
  const [chatTemplate] = template === undefined ? [] : globSync(`**/templates/${template}.jinja`, { cwd: templates });
  const folder = join(tokenizersFolder, 'npm', tokenizer);
  const none = { name, sampled: 0, keptByLast: 0 };
  if (template !== undefined && chatTemplate === undefined) return { ...none, verdict: 'refused: run world/models/install.sh first' };
  try {
    const conversation = await openConversation(folder, chatTemplate === undefined ? {} : { chatTemplate: join(templates, chatTemplate) });
    return { name, ...runConversations(conversation, name) };
  } catch (error) {
    if (!(error instanceof Error) || error instanceof assert.AssertionError) throw error;
    return { ...none, verdict: `refused: ${error.message.replace(folder, 'the model').slice(0, 160)}` };
  }
}

/** Answers with text only, then with reasoning, which some templates drop from earlier turns. */
function runConversations(conversation: LocalConversation, name: string): Omit<LedgerRow, 'name'> {
  const random = makeRandom(17);
  const limits = { max_context_tokens: 1_000_000 } as never; // only compared with the length of the prompt
  let [sampled, keptByLast, hasBranch, opensReasoning] = [0, 0, false, false];
  for (let round = 0; round < 10; round++) {
    const ledger = new Ledger();
    const question: Message = { role: 'user', content: `q${makeText(random, alphabet)}` };
    const opening = conversation.openingIds([question], []);
    opensReasoning = /think>\s*$/.test(opening.text);
    ledger.appendPrompt(opening);
    let own = 0;
    for (let turn = 0; turn < 4; turn++) {
      const before = ledger.promptJson;
      const answer: Message = {
        role: 'assistant',
        content: `x${makeText(random, ['a', ' b', '日', '1', '.'])}`,
        ...(turn % 2 === 1 ? { reasoning: 'hm' } : {}),
      };
      const ids = Int32Array.from([...conversation.tokenizer.encodePlain(answer.content), conversation.endOfTurn.ids[0] ?? 0]);
      ledger.appendSampled({ ...makeSampled(ids, 'stop'), messages: [answer] });
      [sampled, own] = [sampled + ids.length, own + ids.length];
      const more: Message[] = [{ role: 'user', content: `r${makeText(random, alphabet)}` }];
      const shortened = runSteps(renderWithoutReasoning(ledger, conversation, { messages: more, tools: [], limits }));
      if (shortened) {
        ledger.beginBranch(shortened);
        [own, hasBranch] = [0, true];
        continue;
      }
      appendDelta(ledger, conversation, conversation.deltaIds(more));
      assert.ok(ledger.promptJson.subarray(0, before.length).equals(before), name);
    }
    keptByLast += own;
    const trainable = ledger.segments.reduce((sum, { kind, tokenIds }) => sum + (kind === 'sampled' ? tokenIds.length : 0), 0);
    assert.equal(trainable, ledger.counts.sampled, name);
    if (hasBranch || opensReasoning) continue;
    const whole = conversation.openingIds(
      ledger.messages.map(({ reasoning: _, ...message }) => message),
      [],
    );
    assert.equal(ledger.promptJson.toString(), whole.tokenIds.join(), `${name}: the ids of the whole conversation`);
  }
  const plain = opensReasoning ? 'kept as sampled: the generation prompt writes reasoning that a history has not' : 'append-only';
  return { verdict: hasBranch ? 'branches' : plain, sampled, keptByLast };
}
