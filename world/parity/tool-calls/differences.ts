// Where our tool-call parsers and vLLM's read a turn differently, which of them reads it better, and why. The first rule that applies to a
// difference explains it.

import { isDeepStrictEqual } from 'node:util';
import type { CaseKind } from './cases.ts';
import type { ReadCase } from './run-parsers.ts';

interface ParserDifference {
  readonly better: 'ours' | 'theirs' | 'tie';
  readonly why: string;
  readonly kinds?: readonly CaseKind[];
  /** Names of vLLM's parsers. */
  readonly families?: readonly string[];
  readonly applies?: (shape: DifferenceShape) => boolean;
}

/** What a rule may look at. */
interface DifferenceShape {
  /** How many calls each side reads. */
  readonly ours: number;
  readonly theirs: number;
  /** Whether the calls are the same, in their arguments too. */
  readonly sameCalls: boolean;
  readonly isReported: boolean;
  readonly hasError: boolean;
}

const squeeze = (text: string) => text.replace(/\s+/g, ' ').trim();

export function isSameReading({ ours, theirs }: ReadCase): boolean {
  if ('error' in theirs || ours.malformed.length > 0) return false;
  return (
    isDeepStrictEqual(ours.calls, theirs.calls) &&
    squeeze(ours.content) === squeeze(theirs.content) &&
    squeeze(ours.reasoning) === squeeze(theirs.reasoning)
  );
}

export function findDifference(one: ReadCase): ParserDifference | undefined {
  const { ours, theirs } = one;
  const hasError = 'error' in theirs;
  const shape: DifferenceShape = {
    ours: ours.calls.length,
    theirs: hasError ? 0 : theirs.calls.length,
    sameCalls: !hasError && isDeepStrictEqual(ours.calls, theirs.calls),
    isReported: ours.malformed.length > 0,
    hasError,
  };
  return parserDifferences.find(
    ({ kinds, families, applies }) =>
      (kinds?.includes(one.kind) ?? true) && (families?.includes(one.name) ?? true) && (applies?.(shape) ?? true),
  );
}

const broken: readonly CaseKind[] = [
  'cut in a value',
  'cut after a value',
  'the second call cut',
  'only its first mark',
  'broken arguments',
  'cut before its end',
];
const inThoughts: readonly CaseKind[] = ['a call in reasoning', 'a call in reasoning, and one after it'];

export const parserDifferences: readonly ParserDifference[] = [
  {
    better: 'ours',
    why: "vLLM's parser throws on a broken call; we report it to the model.",
    kinds: [...broken, 'its own marks in a string'],
    applies: ({ hasError }) => hasError,
  },
  {
    better: 'ours',
    why: 'The last argument is closed, but the call is not: others may have been cut off. vLLM runs the call; we report it.',
    kinds: ['cut before its end'],
    families: ['glm45', 'glm47', 'ling3'],
    applies: ({ isReported, theirs }) => isReported && theirs === 1,
  },
  {
    better: 'ours',
    why: 'vLLM runs a call that was cut or is broken, with text that is no JSON, with part of a value, or without the argument. We report it.',
    kinds: broken,
    applies: ({ isReported, ours, theirs }) => isReported && theirs > ours,
  },
  {
    better: 'ours',
    why: 'vLLM loses the complete call before a cut one. We run the first and report the second.',
    kinds: ['the second call cut'],
    applies: ({ isReported, ours, theirs }) => isReported && theirs < ours,
  },
  {
    better: 'ours',
    why: 'vLLM takes a call that was cut or is broken for an answer, or drops it. We report it to the model.',
    kinds: broken,
    applies: ({ isReported, sameCalls }) => isReported && sameCalls,
  },
  {
    better: 'ours',
    why: 'Only the closing mark is missing: the JSON, or the element of the call, is complete, so nothing that follows could change the call.',
    kinds: ['cut before its end'],
    applies: ({ isReported, ours, theirs }) => !isReported && ours === 1 && theirs === 0,
  },
  {
    better: 'ours',
    why: 'Text after a call is kept as content; vLLM drops it.',
    kinds: ['prose after'],
    applies: ({ sameCalls }) => sameCalls,
  },
  {
    better: 'ours',
    why: 'Text next to a call makes vLLM take the call for text.',
    kinds: ['prose after', 'prose before'],
    applies: ({ ours, theirs }) => ours === 1 && theirs === 0,
  },
  {
    better: 'ours',
    why: 'Text before a call is kept as content; vLLM drops it.',
    kinds: ['prose before'],
    families: ['llama3_json', 'phi4_mini_json', 'minicpm5', 'olmo3'],
    applies: ({ sameCalls }) => sameCalls,
  },
  {
    better: 'ours',
    why: 'A mark inside a string does not end the call.',
    kinds: ['its own marks in a string'],
    applies: ({ ours, isReported }) => ours === 1 && !isReported,
  },
  {
    better: 'ours',
    why: 'Text inside reasoning is never a call.',
    kinds: inThoughts,
    applies: ({ ours, theirs }) => ours < theirs,
  },
  {
    better: 'ours',
    why: 'vLLM repeats the start of a thought that contains the marks of a message.',
    kinds: inThoughts,
    families: ['muse_glimmer'],
    applies: ({ sameCalls }) => sameCalls,
  },
  {
    better: 'ours',
    why: 'A call of a tool that does not exist is answered with an error that the model reads; vLLM drops the call, or takes it for text.',
    kinds: ['a tool that does not exist'],
    applies: ({ ours, theirs }) => ours === 1 && theirs === 0,
  },
  {
    better: 'tie',
    why: 'A number in quotes where the schema allows no text. We read the number in every format; vLLM in some of them.',
    kinds: ['numbers in quotes'],
    applies: ({ ours, theirs }) => ours === 1 && theirs === 1,
  },
  {
    better: 'ours',
    why: 'The generation prompt opened the reasoning, so the turn starts inside it.',
    kinds: ['reasoning that the prompt opened'],
    families: ['mistral', 'cohere_command3', 'hunyuan_a13b', 'minimax_m3'],
    applies: ({ sameCalls }) => sameCalls,
  },
  {
    better: 'ours',
    why: 'The tags around the text are no content.',
    kinds: ['prose only', 'prose before'],
    families: ['ernie45'],
  },
  {
    better: 'ours',
    why: 'Brackets inside the list of calls do not end it; vLLM then reads no call.',
    kinds: ['all types', 'text that looks like JSON'],
    families: ['phi4_mini_json'],
  },
  {
    better: 'ours',
    why: 'A value ends where its tag closes; vLLM removes white space of the value itself.',
    kinds: ['several lines'],
    families: ['seed_oss', 'minicpm5', 'dots'],
  },
  {
    better: 'ours',
    why: 'The value ends with the call; vLLM runs it without the argument.',
    kinds: ['broken arguments'],
    families: ['mimo'],
  },
  {
    better: 'tie',
    why: 'An object without a schema for its members: the elements do not say whether 1 is a number, or whether one <item> is a list.',
    kinds: ['all types'],
    families: ['minimax_m3'],
  },
  {
    better: 'ours',
    why: 'An argument whose schema is text stays text; vLLM parses it as JSON.',
    kinds: ['text that looks like JSON', 'text that looks like a word of JSON'],
    families: ['muse_glimmer'],
  },
  {
    better: 'ours',
    why: 'Without a reasoning parser vLLM leaves the marks of messages in the text.',
    kinds: ['prose only'],
    families: ['muse_glimmer'],
  },
  {
    better: 'ours',
    why: 'The schema says what is no text, through anyOf too; vLLM leaves lists, objects and anyOf as text, and drops values with "<".',
    kinds: ['all types', 'anyOf with a number', 'anyOf with null', 'several lines'],
    families: ['step3'],
  },
  {
    better: 'ours',
    why: 'Numbers inside nested lists stay numbers.',
    kinds: ['all types'],
    families: ['gemma4'],
  },
  {
    better: 'ours',
    why: 'vLLM reads only values between <escape> marks; the template writes numbers, booleans and null without them.',
    families: ['functiongemma'],
    applies: ({ isReported }) => !isReported,
  },
  {
    better: 'ours',
    why: 'vLLM splits lines at every Unicode line separator, inside strings too.',
    kinds: ['unicode'],
    families: ['olmo3'],
  },
  {
    better: 'tie',
    why: 'An argument that the schema does not know is dropped by vLLM; we pass it on, and the tool reports it.',
    kinds: ['an argument that the schema does not know'],
    families: ['minicpm5'],
  },
  {
    better: 'ours',
    why: 'A call without arguments has an empty object; vLLM hands over empty text, which is no JSON.',
    kinds: ['no arguments', 'three calls, two tools'],
    families: ['cohere_command3'],
  },
  {
    better: 'ours',
    why: 'The start of a message that was not written is no content.',
    kinds: ['prose only', 'reasoning', 'a call in reasoning'],
    families: ['openai'],
    applies: ({ sameCalls }) => sameCalls,
  },
];
