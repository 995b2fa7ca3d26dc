// Conversations turn by turn, as the service holds them, against the whole conversation that the template writes at once. Run it to print
// what differs: node world/models/turns/turn-by-turn.ts [NAME OF A TEMPLATE]

import { mock } from 'node:test';
import { type LocalConversation, openConversation, runSteps } from '@millrace/model';
import type { Message } from '@millrace/protocol';
import { messageOf } from '@millrace/protocol';
import { makeTempFolder } from '@millrace/testkit';
import { appendNext, renderResults } from '../../../packages/model/src/ledger/branch.ts';
import { Ledger } from '../../../packages/model/src/ledger/ledger.ts';
import { type ChatTemplate, openChatTemplate, openRenderer } from '../../../packages/model/src/template/chat-template.ts';
import { openReasoning } from '../../../packages/model/src/template/template-reasoning.ts';
import { toCallId } from '../../../packages/model/src/tool-calls/tool-calls.ts';
import { makeSampled } from '../../../packages/model/test/random-text.ts';
import { readTemplates } from '../collection.ts';
import { eosTokens, guessTokens, toTokenizerConfig, writeStandIn } from '../stand-in/stand-in.ts';
import { type ConversationScript, makeScripts, type ScriptTurn, type WriteId } from './scripts.ts';

/**
 * `same`: the text of the whole conversation. `branch`: the same, as a new branch. `kept`: it differs only in how the policy's own turns are
 * written, because the template writes them into a history otherwise than after its generation prompt, or in what the ledger keeps and the
 * template drops: the system message, or the calls of earlier turns. `refused`: though the template
 * writes the whole. `differs`: any other text, without an error.
 */
type StepVerdict = 'same' | 'branch' | 'kept' | 'refused' | 'differs';

interface StepResult {
  readonly template: string;
  readonly script: string;
  /** 0 is the opening. */
  readonly step: number;
  readonly verdict: StepVerdict;
  readonly what: string;
}

/** The text of a conversation as the template writes it at once, with the generation prompt or without; undefined if it refuses it. */
type RenderWhole = (messages: readonly Message[], script: ConversationScript, addsPrompt?: boolean) => string | undefined;

/** The steps of one template; or why the service does not start with it. */
async function runTemplate(name: string, source: string): Promise<readonly StepResult[] | string> {
  await using folder = await makeTempFolder('stand-in');
  await writeStandIn(folder.path, name, source);
  let conversation: LocalConversation;
  try {
    conversation = await openConversation(folder.path);
  } catch (error) {
    return messageOf(error).replaceAll(folder.path, 'the model');
  }
  const config = toTokenizerConfig(name, source);
  const template = openChatTemplate(config, { controlTokens: guessTokens(source), eosTokens });
  const { bos_token, eos_token } = config;
  const renderText = openRenderer(source, { variables: { bos_token, eos_token }, name, clock: { nowMs: Date.now() } });
  const { write } = openReasoning(source, renderText);
  const renderWhole: RenderWhole = (messages, { tools }, addsPrompt = true) => {
    try {
      return renderText(messages.map(write), tools, addsPrompt);
    } catch {
      return undefined; // the template refuses such a conversation
    }
  };
  const scripts = makeScripts(chooseIds(source)).filter(({ tools }) => template.declaresTools || tools.length === 0);
  return scripts.flatMap((script) => runScript({ name, conversation, template, renderWhole }, script));
}

/** As the model of this template writes the ids of its calls. */
function chooseIds(source: string): WriteId {
  if (source.includes("'functions.' +")) return (name, _, at) => `functions.${name}:${at}`;
  if (source.includes('add_tool_id = false')) return (_, __, at) => toCallId(at); // the last turn is written without ids
  return (_, index) => `k3x9Qz7A${index}`;
}

interface RunningTemplate {
  readonly name: string;
  readonly conversation: LocalConversation;
  readonly template: ChatTemplate;
  readonly renderWhole: RenderWhole;
}

function runScript(running: RunningTemplate, script: ConversationScript): StepResult[] {
  const { name, conversation, renderWhole } = running;
  const results: StepResult[] = [];
  const note = (verdict: StepVerdict, what = '') =>
    results.push({ template: name, script: script.name, step: results.length, verdict, what });
  const ledger = new Ledger();
  let messages = script.opening;
  const wanted = renderWhole(messages, script);
  if (wanted === undefined) return results;
  try {
    ledger.appendPrompt(conversation.openingIds(messages, script.tools));
  } catch (error) {
    note('refused', messageOf(error));
    return results;
  }
  const seen = textOf(ledger, conversation);
  note(seen === wanted ? 'same' : 'differs', describe(seen, wanted));
  for (const step of script.turns) {
    const whole = renderWhole([...messages, step.turn, ...step.next], script);
    if (whole === undefined || step.next.some(({ content }) => !whole.includes(content))) return results;
    try {
      note(...runStep(running, { script, ledger, messages, step, whole }));
    } catch (error) {
      note('refused', messageOf(error));
      return results;
    }
    messages = [...messages, step.turn, ...step.next];
  }
  return results;
}

interface RunningStep {
  readonly script: ConversationScript;
  readonly ledger: Ledger;
  readonly messages: readonly Message[];
  readonly step: ScriptTurn;
  readonly whole: string;
}

function runStep(running: RunningTemplate, { script, ledger, messages, step, whole }: RunningStep): [StepVerdict, string] {
  const { conversation, renderWhole } = running;
  const before = textOf(ledger, conversation);
  const message = sample(running, { script, ledger, messages, step, whole });
  const results = step.next.map((one) => renameResult(one, step.turn, message));
  const limits = { max_context_tokens: 1_000_000 };
  const next = runSteps(renderResults(ledger, conversation, { messages: results, tools: script.tools, limits }));
  if (!next) throw new Error('it does not fit');
  appendNext(ledger, conversation, next);
  const seen = textOf(ledger, conversation);
  if (seen === whole) return [next.kind === 'branch' ? 'branch' : 'same', ''];
  const isDropped = script.opening.some(({ role, content }) => role === 'system' && !whole.includes(content));
  const isSilent = messages.some(({ tool_calls = [] }) =>
    tool_calls.some(({ arguments: args }) => !whole.includes(Object.values(args).join())),
  );
  if (next.kind === 'delta' && (isDropped || isSilent) && whole.endsWith(next.rendered.text.trimStart())) return ['kept', ''];
  const isPromptKept = keepsPrompt(renderWhole(messages, script) ?? '', { whole, messages });
  const isKept = next.kind === 'delta' && isPromptKept && whole.endsWith(next.rendered.text.trimStart());
  const isThoughtKept = [...messages, step.turn].every(({ reasoning = '' }) => seen.includes(reasoning) === whole.includes(reasoning));
  return isKept && isThoughtKept
    ? ['kept', '']
    : ['differs', `${next.kind}: ${describe(seen, whole)}, after ${JSON.stringify(before.slice(-60))}`];
}

/** Appends the turn as the template would have the policy write it, with the ids that are read from it. */
function sample({ conversation, template, renderWhole }: RunningTemplate, { script, ledger, messages, step, whole }: RunningStep): Message {
  const { tokenizer, endOfTurn, profile } = conversation;
  const before = textOf(ledger, conversation);
  const closed = renderWhole([...messages, step.turn], script, false) ?? '';
  const written = {
    ...step.turn,
    ...readIds(
      step.turn,
      profile.parser.parse(afterCommon(closed, before), script.tools).calls.slice(-(step.turn.tool_calls?.length ?? 0)),
    ),
  };
  const ends = endOfTurn.ids.map((id) => ({ id, end: tokenizer.decode([id]) }));
  const follows = endOfTurn.isShared ? whole.slice(closed.trimEnd().length).trimStart() : closed.slice(before.length);
  const places = ends.map(({ id, end }) => ({ id, at: endOfTurn.isShared ? follows.indexOf(end) : follows.lastIndexOf(end) }));
  const [{ id, at } = { id: 0, at: -1 }] = places
    .filter((one) => one.at >= 0)
    .sort((a, b) => (endOfTurn.isShared ? a.at - b.at : b.at - a.at));
  const isHistory = closed.startsWith(before) && at >= 0;
  const own = endOfTurn.isShared ? closed.slice(before.length).trimEnd() : follows.slice(0, at);
  const text = isHistory ? own : template.writeTurn(step.turn, script.tools);
  const tokenIds = Int32Array.from([...tokenizer.encode(text), at >= 0 ? id : (endOfTurn.ids[0] ?? 0)]);
  ledger.appendSampled({ ...makeSampled(tokenIds, 'stop'), text, messages: [written] });
  return written;
}

function afterCommon(text: string, other: string): string {
  let at = 0;
  while (at < text.length && text[at] === other[at]) at += 1;
  return text.slice(at);
}

function readIds({ tool_calls }: Message, read: readonly { readonly id: string }[]): Pick<Message, 'tool_calls'> {
  return tool_calls ? { tool_calls: tool_calls.map((call, at) => ({ ...call, id: read[at]?.id ?? call.id })) } : {};
}

/** Whether the whole has everything of the prompt up to the marks of the policy's turn. */
function keepsPrompt(prompt: string, { whole, messages }: { whole: string; messages: readonly Message[] }): boolean {
  const common = prompt.slice(0, prompt.length - afterCommon(prompt, whole).length);
  const marked = Math.max(...['>', ']', '\n'].map((sign) => common.lastIndexOf(sign))) + 1;
  const last = messages.at(-1)?.content ?? '';
  return marked > prompt.lastIndexOf(last) + last.length;
}

/** The results answer the calls as they were read. */
function renameResult(result: Message, turn: Message, read: Message): Message {
  const at = turn.tool_calls?.findIndex(({ id }) => id === result.tool_call_id) ?? -1;
  const id = read.tool_calls?.[at]?.id;
  return id === undefined ? result : { ...result, tool_call_id: id };
}

function textOf(ledger: Ledger, { tokenizer }: LocalConversation): string {
  return tokenizer.decode(Int32Array.from(ledger.promptJson.toString().split(','), Number));
}

function describe(seen: string, wanted: string): string {
  let at = 0;
  while (at < seen.length && seen[at] === wanted[at]) at += 1;
  const show = (text: string) => JSON.stringify(text.slice(Math.max(at - 30, 0), at + 70));
  return seen === wanted ? '' : `${show(seen)} instead of ${show(wanted)}`;
}

interface TurnComparison {
  readonly steps: readonly StepResult[];
  /** Templates that the service does not start with, and why. */
  readonly refused: ReadonlyMap<string, string>;
}

export async function compareTurns(only: RegExp = /./): Promise<TurnComparison> {
  const [steps, refused]: [StepResult[], Map<string, string>] = [[], new Map()];
  mock.timers.enable({ apis: ['Date'], now: Date.now() }); // some templates write the time, to the second
  try {
    for (const [name, source] of readTemplates()) {
      if (!only.test(name)) continue;
      const found = await runTemplate(name, source);
      if (typeof found === 'string') refused.set(name, found);
      else steps.push(...found);
    }
  } finally {
    mock.timers.reset();
  }
  return { steps, refused };
}

export function countSteps(steps: readonly StepResult[]): Readonly<Record<StepVerdict, number>> {
  const count = (verdict: StepVerdict) => steps.filter((step) => step.verdict === verdict).length;
  return { same: count('same'), branch: count('branch'), kept: count('kept'), refused: count('refused'), differs: count('differs') };
}

if (import.meta.main) {
  const { steps, refused } = await compareTurns(new RegExp(process.argv[2] ?? '.'));
  for (const { template, script, step, verdict, what } of steps)
    if (verdict === 'differs' || verdict === 'refused') console.log(`${template}, ${script}, step ${step}: ${verdict}: ${what}`);
  for (const [name, why] of refused) console.log(`${name}: refused at the start: ${why}`);
  console.log(countSteps(steps));
}
