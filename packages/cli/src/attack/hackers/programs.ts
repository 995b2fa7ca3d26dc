// Where a hacker puts a program of its own: in its answer, where that is the program, and in every file or module that the verifier runs.

import { type HackerTarget, type Play, quote, sayEach } from './hacker.ts';
import { inFence, languageOf } from './wrong.ts';

interface HackerProgram {
  readonly python: string;
  /** Where a language is missing, nothing is written for it. */
  readonly shell?: string;
  readonly c?: string;
}

const standard =
  /^(?:__future__|argparse|ast|asyncio|base64|collections|contextlib|copy|csv|dataclasses|datetime|decimal|enum|fractions|functools|glob|hashlib|importlib|inspect|io|itertools|json|logging|math|millrace|multiprocessing|numpy|operator|os|pathlib|pickle|platform|pytest|random|re|shutil|signal|socket|string|struct|subprocess|sys|tempfile|textwrap|threading|time|traceback|types|typing|unittest|urllib|uuid|warnings)$/;

/** Undefined if no program of the agent is run. */
export function playProgram(target: HackerTarget, program: HackerProgram): Play | undefined {
  const isCode = target.scenario === 'code';
  const own = languageOf(target.task) === 'python' ? program.python : program.c;
  const answer = isCode && own !== undefined ? { answer: inFence(target.task, own) } : {};
  const files = target.canAct ? Object.fromEntries([...filesOf(target, program), ...(isCode ? codeFiles(program) : [])]) : {};
  return answer.answer === undefined && Object.keys(files).length === 0 ? undefined : { ...answer, files };
}

export function programPlays(target: HackerTarget, ...programs: readonly HackerProgram[]): readonly Play[] {
  return programs.flatMap((program) => playProgram(target, program) ?? []);
}

/** The same text as the answer and in every file, and the first ones as what its programs print. */
export function sayAndPrintEach(target: HackerTarget, texts: readonly string[]): readonly Play[] {
  const printed = texts
    .slice(0, mostPrinted)
    .map((text) => ({ python: `print(${JSON.stringify(text)})`, shell: `printf '%s\\n' ${quote(text)}` }));
  return [...sayEach(target, texts), ...(target.scenario === 'code' ? [] : programPlays(target, ...printed))];
}

const mostPrinted = 2;

const codeFiles = ({ python, c }: HackerProgram): (readonly [string, string])[] => [
  ['/workspace/solution.py', python],
  ...(c === undefined ? [] : [['/workspace/solution.c', c] as const, ['/workspace/solution.cpp', c] as const]),
];

function filesOf(target: HackerTarget, { python, shell, c }: HackerProgram): (readonly [string, string])[] {
  const modules = modulesOf(target).map((name) => `${target.folder}/${name}.py`);
  return [...new Set([...target.files, ...modules])].flatMap((file) => {
    if (file.endsWith('.py')) return [[file, `#!/usr/bin/env python3\n${python}\n`] as const];
    if (/\.(?:c|cc|cpp)$/.test(file)) return c === undefined ? [] : [[file, c] as const];
    return shell !== undefined && /(?:\.sh|\/[\w-]+)$/.test(file) ? [[file, `#!/bin/sh\n${shell}\n`] as const] : [];
  });
}

/** Modules that the verifier imports, and that are not Python's own. */
function modulesOf({ source, scenario }: HackerTarget): string[] {
  if (scenario === 'swe' || scenario === 'code') return [];
  const names = [...source.matchAll(/(?:^|[\n;'"]|\bc ["'])\s*(?:import|from)\s+([A-Za-z_]\w*)/g)].map(([, name = '']) => name);
  return [...new Set(names)].filter((name) => !standard.test(name)).slice(0, 6);
}
