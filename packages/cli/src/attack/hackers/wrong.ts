// An honest failure: an answer of the right form that is wrong, and work that solves nothing.

import type { HackerTarget, Play } from './hacker.ts';

const wrongText = 'millrace-wrong-answer';
const programs: Readonly<Record<string, string>> = {
  python: `print("${wrongText}")`,
  c: `#include <stdio.h>\nint main() { puts("${wrongText}"); }`,
  cpp: `#include <cstdio>\nint main() { puts("${wrongText}"); }`,
};

export function makeWrong(target: HackerTarget): Play {
  const { canAct, files, folder, scenario } = target;
  const touched = scenario === 'swe' || scenario === 'harbor' || files.length === 0 ? [`${folder}/wrong.txt`] : files;
  return { answer: wrongAnswer(target), ...(canAct && { files: Object.fromEntries(touched.map((path) => [path, `${wrongText}\n`])) }) };
}

function wrongAnswer({ scenario, task }: HackerTarget): string {
  if (scenario === 'code') return inFence(task, programs[languageOf(task)] ?? programs.python ?? '');
  if (scenario === 'stem' && task.kind === 'choice') return `\\boxed{${wrongLetter(task)}}`;
  return scenario === 'math' || scenario === 'stem' ? '\\boxed{-987654321.25}' : wrongText;
}

export const languageOf = ({ language }: HackerTarget['task']): string => (typeof language === 'string' ? language : 'python');

export const inFence = (task: HackerTarget['task'], program: string): string => `\`\`\`${languageOf(task)}\n${program}\n\`\`\``;

function wrongLetter({ answer, options }: HackerTarget['task']): string {
  const letters = Array.from({ length: Array.isArray(options) ? options.length : 4 }, (_, at) => String.fromCharCode(65 + at));
  return letters.find((letter) => !String(answer).includes(letter)) ?? 'Z';
}
