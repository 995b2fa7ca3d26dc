// Finds the answer in an agent's text and compares it with the expected one; pure, for a grader's thread. Only what an LLM must judge is left.

import { findAnswer } from '@millrace/answers';
import { findChoice } from './choice.ts';
import { findQuantity, isSameQuantity } from './quantity.ts';
import { isSameText } from './short-text.ts';
import type { StemTask } from './stem-task.ts';

export function judgeStem(task: StemTask, text: string) {
  const given = task.kind === 'choice' ? findChoice(text, task.options) : task.kind === 'text' ? textOf(text) : (findQuantity(text) ?? '');
  const hasFormat = findAnswer(text)?.from === 'box';
  const isRead = given !== '' && (hasFormat || !task.require_box);
  return { given, isRight: isRead && isRight(task, given), hasFormat };
}

function isRight(task: StemTask, given: string): boolean {
  switch (task.kind) {
    case 'choice':
      return given === [...new Set(task.answer)].sort().join('');
    case 'numeric': {
      const rule = { relative: task.relative_tolerance, absolute: task.absolute_tolerance, isUnitRequired: task.unit_required };
      return [task.answer].flat().some((answer) => isSameQuantity(given, answer, rule));
    }
    case 'text':
      return [task.answer].flat().some((answer) => isSameText(given, answer));
  }
}

/** The box or the announced answer; otherwise a reply of one line. */
function textOf(answer: string): string {
  const found = findAnswer(answer);
  if (found?.from === 'box' || found?.from === 'sentence' || found?.from === 'unread') return found.text;
  const lines = answer
    .trim()
    .split('\n')
    .filter((line) => line.trim() !== '');
  return lines.at(-1)?.trim().slice(0, 1000) ?? '';
}
