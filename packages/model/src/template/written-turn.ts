// The text of an assistant's turn as the template writes it into a history. The model is trained to write the same after the generation
// prompt, so a parser must read it.

import type { Message } from '@millrace/protocol';
import { question } from './template-pasts.ts';
import type { TurnEnds } from './turn-ends.ts';

type RenderMessages = (messages: readonly Message[], addsPrompt: boolean) => string;

/** A generation prompt may open the reasoning, or say that there is none; a turn in the history may not start so. */
const opensReasoning = /(?:<[^<>]*think[^<>]*>|\[THINK\]|<\|START_THINKING\|>|<\|channel>thought)[\s\S]*$/i;

export function writeTurn(render: RenderMessages, turn: Message, ends: TurnEnds): string {
  const prompt = afterQuestion(render([question], true));
  const whole = afterQuestion(render([question, turn], false));
  const heads = [prompt, prompt.trimEnd(), prompt.replace(opensReasoning, ''), prompt.replace(opensReasoning, '').trimEnd()];
  const head = heads.find((one) => whole.startsWith(one)) ?? commonHead(prompt, whole);
  return dropEnd(whole.slice(head.length), ends);
}

/** What comes before the question may depend on what follows it. */
function afterQuestion(text: string): string {
  return text.slice(text.lastIndexOf(question.content) + question.content.length);
}

/** What both start with, up to the end of a tag or line. */
export function commonHead(prompt: string, whole: string): string {
  let length = 0;
  while (length < prompt.length && prompt[length] === whole[length]) length += 1;
  const common = whole.slice(0, length);
  return common.slice(0, Math.max(common.lastIndexOf('>'), common.lastIndexOf(']'), common.lastIndexOf('\n')) + 1);
}

function dropEnd(text: string, { all, isShared }: TurnEnds): string {
  if (isShared) return all.reduce((rest, end) => (rest.trimEnd().endsWith(end) ? rest.trimEnd().slice(0, -end.length) : rest), text);
  const cuts = all.map((end) => text.lastIndexOf(end)).filter((at) => at >= 0);
  return cuts.length === 0 ? text : dropRepeated(text.slice(0, Math.max(...cuts)), all);
}

/** A template may write the end twice, once with the token that ends a text (Apriel 1.5). */
function dropRepeated(text: string, all: readonly string[]): string {
  const end = all.find((one) => text.trimEnd().endsWith(one));
  return end === undefined ? text : text.trimEnd().slice(0, -end.length);
}
