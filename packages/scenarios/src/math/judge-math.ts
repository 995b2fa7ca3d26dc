// Finds the answer in an agent's text and compares it with the expected ones; pure, for a grader's thread.

import { findAnswer, isSameAnswer } from '@millrace/answers';

interface ExpectedAnswer {
  readonly answer: string | readonly string[];
  readonly require_box?: boolean;
}

export function judgeMath({ answer, require_box }: ExpectedAnswer, text: string) {
  const given = findAnswer(text);
  const truths = [answer].flat().map((one) => (one.includes('\\boxed') ? (findAnswer(one)?.text ?? one) : one));
  const isRead = given !== undefined && (given.from === 'box' || !require_box);
  const same = isRead && truths.some((truth) => isSameAnswer(given.text, truth));
  return { given: given?.text ?? '', correctness: same ? 1 : 0, hasFormat: given?.from === 'box' };
}
