// Finds the program in an agent's answer: the last code block of its language, or the last one without a language.

import { type LanguageName, languages } from './languages.ts';

const maxAnswerLength = 1 << 20;

/** Undefined if there is no closed code block. */
export function findProgram(answer: string, language: LanguageName): string | undefined {
  const { fences } = languages[language];
  const blocks: { readonly name: string; readonly text: string }[] = [];
  let open: { name: string; lines: string[] } | undefined;
  for (const line of answer.slice(-maxAnswerLength).split('\n')) {
    const name = readFence(line);
    if (name === undefined) open?.lines.push(line);
    else if (open === undefined) open = { name: name.toLowerCase(), lines: [] };
    else {
      blocks.push({ name: open.name, text: open.lines.join('\n') });
      open = undefined;
    }
  }
  const named = blocks.filter(({ name }) => name !== '' && fences.includes(name));
  return (named.at(-1) ?? blocks.filter(({ name }) => name === '').at(-1))?.text;
}

/** What follows the backticks, if it is one word or nothing. */
function readFence(line: string): string | undefined {
  const [marks] = /^\s{0,3}`{3,}/.exec(line) ?? [];
  const name = marks === undefined ? '?' : line.slice(marks.length).trim();
  return /^[\w+#-]*$/.test(name) ? name : undefined;
}
