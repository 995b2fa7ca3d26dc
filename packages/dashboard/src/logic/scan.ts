// What is worth a look in a conversation: refusals, loops, environments that are broken, and what a reader's own patterns find.

import type { Message } from '@millrace/protocol';
import type { SegmentView } from './tokens.ts';

export interface ScanPattern {
  readonly name: string;
  /** Whose words are searched; agent and tools unless set. */
  readonly role?: 'assistant' | 'tool';
  readonly expression: RegExp;
}

export interface Finding {
  readonly name: string;
  readonly turn: number;
  readonly branch: number;
  /** What was found, with a little around it. */
  readonly excerpt: string;
}

export const builtInPatterns: readonly ScanPattern[] = [
  {
    name: 'refusal',
    role: 'assistant',
    expression:
      /\bI(?: can(?:no|'|’)t| cannot| won['’]t|['’]m unable to|['’]m not able to| am unable to| am not able to) (?:help|assist|comply|provide|do that|fulfil)/i,
  },
  {
    name: 'broken-environment',
    role: 'tool',
    expression:
      /command not found|no module named|no space left on device|connection refused|could not resolve host|temporary failure in name resolution|cannot allocate memory|read-only file system|segmentation fault/i,
  },
];

/** Found without a pattern. */
export const loopName = 'loop';
const sameCalls = 3;
const sameLines = 10;

/** Longer texts are searched up to here: a page stays responsive, and a pattern of a reader may be slow. */
const longestText = 100_000;
const around = 60;
/** Of one name in one rollout; the first of them say enough. */
const mostOfOne = 5;

/** `name=expression`, or only an expression. Throws if it is none. Letters match in either case. */
export function parsePattern(text: string): ScanPattern {
  const [, name, expression = text] = /^([\w-]+)=(.+)$/s.exec(text) ?? [];
  return { name: name ?? text, expression: new RegExp(expression, 'i') };
}

export function scanTrajectory(segments: readonly SegmentView[], patterns: readonly ScanPattern[] = builtInPatterns): Finding[] {
  const found: Finding[] = [];
  const loops = new Map<number, CallRun>();
  for (const { messages, turn, branch = 0, kind } of segments) {
    // What a branch or a task begins with was not said here.
    if (kind === 'prompt') continue;
    for (const message of messages) {
      const add = (name: string, excerpt: string) => found.push({ name, turn, branch, excerpt });
      for (const { name, role, expression } of patterns) {
        if (message.role !== 'assistant' && message.role !== 'tool') continue;
        if (role !== undefined && role !== message.role) continue;
        const match = expression.exec(toText(message));
        if (match !== null) add(name, cut(match.input, match.index, match[0].length));
      }
      const loop = message.role === 'assistant' ? findLoop(message, branch, loops) : undefined;
      if (loop !== undefined) add(loopName, loop);
    }
  }
  return limitEach(found);
}

function toText({ content, reasoning = '', tool_calls: calls = [] }: Message): string {
  const given = calls.map((call) => `${call.name} ${Object.values(call.arguments).map(String).join(' ')}`);
  return [reasoning, content, ...given].join('\n').slice(0, longestText);
}

function cut(text: string, at: number, length: number): string {
  const [from, to] = [Math.max(0, at - around), Math.min(text.length, at + Math.min(length, 3 * around) + around)];
  return `${from === 0 ? '' : '…'}${text.slice(from, to).trim()}${to === text.length ? '' : '…'}`;
}

interface CallRun {
  readonly calls: string;
  readonly times: number;
}

/** The same calls several turns in a row, or one line again and again. */
function findLoop({ content, tool_calls: calls = [] }: Message, branch: number, runs: Map<number, CallRun>): string | undefined {
  const key = JSON.stringify(calls.map((call) => [call.name, call.arguments]));
  const before = runs.get(branch);
  const times = calls.length > 0 && before?.calls === key ? before.times + 1 : 1;
  runs.set(branch, { calls: key, times });
  if (times === sameCalls)
    return `${sameCalls} turns with the same call: ${calls.map((call) => call.name).join(', ')} ${key.slice(0, 2 * around)}`;
  let [line, count] = ['', 0];
  for (const next of content.slice(0, longestText).split('\n')) {
    [line, count] = next.trim() !== '' && next === line ? [line, count + 1] : [next, 1];
    if (count === sameLines) return `${sameLines} times the line: ${line.slice(0, 2 * around)}`;
  }
  return undefined;
}

function limitEach(found: readonly Finding[]): Finding[] {
  const counts = new Map<string, number>();
  return found.filter(({ name }) => {
    counts.set(name, (counts.get(name) ?? 0) + 1);
    return (counts.get(name) ?? 0) <= mostOfOne;
  });
}
