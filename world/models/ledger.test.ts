// The ledger over model families, with published tokenizers and templates: where a template is append-only, the ids that the ledger joins turn
// by turn are those of the whole conversation; where it is not, a new branch starts, and every sampled token stays trainable in the old one.

import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type LocalConversation, openConversation, runSteps } from '@millrace/model';
import type { Message } from '@millrace/protocol';
import { makeTempFolder } from '@millrace/testkit';
import type { ConversationOptions } from '../../packages/model/src/conversation.ts';
import { appendNext, renderResults } from '../../packages/model/src/ledger/branch.ts';
import { Ledger } from '../../packages/model/src/ledger/ledger.ts';
import { alphabet, makeSampled, makeText } from '../../packages/model/test/random-text.ts';
import { worldCacheFolder } from '../engines/world-cache.ts';
import { openCollection, skipWithoutTokenizers } from '../tokenizers/collection.ts';
import { makeRandom } from '../tokenizers/texts.ts';
import { readTemplates, skipWithoutModels } from './collection.ts';
import { writeStandIn } from './stand-in/stand-in.ts';

const templatesFolder = join(worldCacheFolder(), 'models/llama-cpp-python');

/** A published tokenizer, with its own template or one of llama.cpp's collection. */
const families: readonly (readonly [tokenizer: string, template?: string])[] = [
  ['npm/qwen1_5'],
  ['npm/qwen2_5'],
  ['npm/qwen3'],
  ['npm/llama3'],
  ['npm/llama3_1'],
  ['npm/llama3_2'],
  ['npm/mistral_nemo'],
  ['npm/gemma2'],
  ['npm/gemma3'],
  ['npm/qwen3', 'Qwen-QwQ-32B'],
  ['npm/qwen3', 'Qwen3-Coder'],
  ['npm/deepseek_v3', 'deepseek-ai-DeepSeek-V3.1'],
  ['npm/deepseek_v3', 'deepseek-ai-DeepSeek-V3.2'],
  ['npm/gemma2', 'google-gemma-2-2b-it'],
  ['npm/llama3_1', 'meta-llama-Llama-3.3-70B-Instruct'],
  ['llama.cpp/qwen35', 'Qwen3.5-4B'],
  ['llama.cpp/gemma-4', 'google-gemma-4-31B-it'],
  ['mistral-common/tekken_240911', 'mistralai-Mistral-Nemo-Instruct-2407'],
  ['SmolLM2'],
];

interface LedgerRow {
  readonly name: string;
  readonly verdict:
    | 'append-only'
    | 'branches'
    | 'kept as sampled: a history has other text around an answer than the generation prompt and the model write'
    | `refused: ${string}`
    | `differs: ${string}`;
  readonly sampled: number;
  /** Of all sampled tokens, those that the last branch alone still has as sampled. */
  readonly keptByLast: number;
}

test('with published tokenizers, the ledger holds the ids of the whole conversation, or starts a branch', {
  skip: skipWithoutTokenizers(),
  timeout: 600_000,
}, async () => {
  const wanted = new Set(families.map(([tokenizer]) => tokenizer));
  const folders = new Map(openCollection((name) => wanted.has(name)).map(({ name, folder }) => [name, folder]));
  const rows: LedgerRow[] = [];
  for (const [tokenizer, template] of families) {
    const [found] = template === undefined ? [] : globSync(`**/templates/${template}.jinja`, { cwd: templatesFolder });
    const name = template === undefined ? tokenizer : `${tokenizer} with ${template}`;
    const options = found === undefined ? {} : { chatTemplate: join(templatesFolder, found) };
    rows.push(await runFamily(name, folders.get(tokenizer) ?? 'none', options));
  }
  report(rows);
  assert.deepEqual(findDifferent(rows), []);
  assert.ok(countContinued(rows) >= 14);
});

test('with every usable published template, the ledger holds the ids of the whole conversation, or starts a branch', {
  skip: skipWithoutModels(),
  timeout: 600_000,
}, async () => {
  const rows: LedgerRow[] = [];
  for (const [name, source] of readTemplates()) {
    await using folder = await makeTempFolder('stand-in');
    await writeStandIn(folder.path, name, source);
    rows.push(await runFamily(name, folder.path));
  }
  report(rows);
  assert.deepEqual(findDifferent(rows), []);
  assert.ok(countContinued(rows) >= 73);
});

function report(rows: readonly LedgerRow[]): void {
  for (const { name, verdict, sampled, keptByLast } of rows) {
    const share =
      verdict === 'branches'
        ? `: ${Math.round((100 * keptByLast) / sampled)} % of the sampled tokens are trainable in the last branch alone, all of them in all branches`
        : '';
    console.log(`${name}: ${verdict}${share}`);
  }
}

function findDifferent(rows: readonly LedgerRow[]): string[] {
  return rows.filter(({ verdict }) => verdict.startsWith('differs')).map(({ name }) => name);
}

function countContinued(rows: readonly LedgerRow[]): number {
  return rows.filter(({ verdict }) => !verdict.startsWith('refused')).length;
}

async function runFamily(name: string, folder: string, options: ConversationOptions = {}): Promise<LedgerRow> {
  try {
    return { name, ...runConversations(await openConversation(folder, options), name) };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const what = error instanceof assert.AssertionError ? 'differs' : 'refused';
    return { name, sampled: 0, keptByLast: 0, verdict: `${what}: ${error.message.replaceAll(folder, 'the model').slice(0, 160)}` };
  }
}

/** Answers with text only, then with reasoning, which some templates drop from earlier turns. */
function runConversations(conversation: LocalConversation, name: string): Omit<LedgerRow, 'name'> {
  const random = makeRandom(17);
  const limits = { max_context_tokens: 1_000_000 } as never; // only compared with the length of the prompt
  let [sampled, keptByLast, hasBranch] = [0, 0, false];
  const isPlain = writesPlainAnswers(conversation);
  for (let round = 0; round < 10; round++) {
    const ledger = new Ledger();
    const question: Message = { role: 'user', content: `q${makeText(random, alphabet)}` };
    const opening = conversation.openingIds([question], []);
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
      const next = runSteps(renderResults(ledger, conversation, { messages: more, tools: [], limits }));
      if (next) appendNext(ledger, conversation, next);
      if (next?.kind === 'branch') [own, hasBranch] = [0, true];
      else assert.ok(ledger.promptJson.subarray(0, before.length).equals(before), name);
    }
    keptByLast += own;
    const trainable = ledger.segments.reduce((sum, { kind, tokenIds }) => sum + (kind === 'sampled' ? tokenIds.length : 0), 0);
    assert.equal(trainable, ledger.counts.sampled, name);
    if (hasBranch || !isPlain) continue;
    const whole = conversation.openingIds(
      ledger.messages.map(({ reasoning: _, ...message }) => message),
      [],
    );
    assert.equal(ledger.promptJson.toString(), whole.tokenIds.join(), `${name}: the ids of the whole conversation`);
  }
  const kept = 'kept as sampled: a history has other text around an answer than the generation prompt and the model write';
  return { verdict: hasBranch ? 'branches' : isPlain ? 'append-only' : kept, sampled, keptByLast };
}

/**
 * Some templates write an empty thought before an answer, or have one in the generation prompt that a history has not. Others write a
 * newline between an answer and its end.
 */
function writesPlainAnswers(conversation: LocalConversation): boolean {
  const ask: Message = { role: 'user', content: 'ask' };
  const history = conversation.openingIds([ask, { role: 'assistant', content: 'answer' }, ask], []);
  return history.text.startsWith(`${conversation.openingIds([ask], []).text}answer${conversation.endOfTurn.text}`);
}
