// Turns as models write them, good and bad, for each family that both sides know.

import type { ToolSpec } from '@millrace/protocol';
import type { ParserFamily, WrittenCall } from './family.ts';
import { jsonFamilies } from './json-families.ts';
import { literalFamilies } from './literal-families.ts';
import { otherXmlFamilies, xmlFamilies } from './xml-families.ts';

export const families: readonly ParserFamily[] = [...jsonFamilies, ...xmlFamilies, ...otherXmlFamilies, ...literalFamilies];

export const tools: readonly ToolSpec[] = [
  {
    name: 'bash',
    description: 'Runs a command.',
    parameters: {
      type: 'object',
      properties: {
        command: { type: 'string' },
        limit: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
        count: { type: 'integer' },
        ratio: { type: 'number' },
        quiet: { type: 'boolean' },
        tags: { type: 'array', items: { type: 'string' } },
        env: { type: 'object' },
        either: { type: ['string', 'integer'] },
        mode: { enum: ['fast', 'slow'] },
      },
      required: ['command'],
    },
  },
  { name: 'now', description: 'The time.', parameters: { type: 'object', properties: {} } },
];

export interface ParserCase {
  /** The place of its family in `families`. */
  readonly family: number;
  readonly kind: CaseKind;
  readonly text: string;
  /** Whether vLLM reads it with the family's reasoning parser. */
  readonly thinks: boolean;
}

const call = (args: Record<string, unknown>, name = 'bash'): WrittenCall => ({ name, arguments: args });
const ls = call({ command: 'ls -l' });
const prose = 'I will list the files.';
const say = ({ say: write = (text: string) => text }: ParserFamily, text: string) => write(text);

/** The turn without its last mark, or what else ends it. */
function dropEnd(text: string): string {
  return text.trimEnd().replace(/(?:<[^<>]*>|\]<\]minimax\[>\[<[^<>]*>|[)\]}"]+)$/, '');
}

const cutAt = (family: ParserFamily, part: string, keep: number) => {
  const text = family.write([call({ command: `first ${part} last`, count: 3 })]);
  return text.slice(0, text.indexOf(part) + keep);
};

const kinds = {
  'one call': (family: ParserFamily) => family.write([ls]),
  'no arguments': (family: ParserFamily) => family.write([call({}, 'now')]),
  'parallel calls': (family: ParserFamily) => (family.isSingle ? undefined : family.write([ls, call({ command: 'pwd' })])),
  'three calls, two tools': (family: ParserFamily) =>
    family.isSingle ? undefined : family.write([ls, call({}, 'now'), call({ command: 'pwd', count: 2 })]),
  'prose before': (family: ParserFamily) => `${say(family, prose)}${family.say ? '' : '\n'}${family.write([ls])}`,
  'prose after': (family: ParserFamily) => (family.say ? undefined : `${family.write([ls])}\nThat should do.`),
  'prose only': (family: ParserFamily) => say(family, 'The answer is 42.'),
  'all types': (family: ParserFamily) =>
    family.write([call({ command: 'x', count: 3, ratio: 0.5, quiet: true, tags: ['a', 'b'], env: { A: '1', B: { c: [1, 2] } } })]),
  'anyOf with a number': (family: ParserFamily) => family.write([call({ command: 'x', limit: 5 })]),
  'anyOf with null': (family: ParserFamily) => family.write([call({ command: 'x', limit: null })]),
  'a type that is a list': (family: ParserFamily) => family.write([call({ command: 'x', either: 'text' })]),
  'an enum without a type': (family: ParserFamily) => family.write([call({ command: 'x', mode: 'fast' })]),
  'a number as text': (family: ParserFamily) => family.write([call({ command: '007', count: 12 })]),
  'numbers in quotes': (family: ParserFamily) => family.write([call({ command: 'x', count: '12', quiet: 'false' })]),
  'text that looks like JSON': (family: ParserFamily) => family.write([call({ command: '{"a": [1, 2]}' })]),
  'text that looks like a word of JSON': (family: ParserFamily) => family.write([call({ command: 'true' })]),
  'an argument that the schema does not know': (family: ParserFamily) => family.write([call({ command: 'x', other: 'y' })]),
  'a tool that does not exist': (family: ParserFamily) => family.write([call({ path: 'a' }, 'open_file')]),
  quotes: (family: ParserFamily) => family.write([call({ command: 'echo "a b" \'c\' \\n \\\\ "{" }' })]),
  'several lines': (family: ParserFamily) => family.write([call({ command: 'cat <<E\n\n  one\n\ttwo\nE\n' })]),
  unicode: (family: ParserFamily) => family.write([call({ command: 'echo "héllo 日本語 🙂🏽 \u2028 é"' })]),
  'its own marks in a string': (family: ParserFamily) => family.write([call({ command: `echo '${closing(family)}' x` })]),
  'empty text': (family: ParserFamily) => family.write([call({ command: '' })]),
  'large and small numbers': (family: ParserFamily) => family.write([call({ command: 'x', ratio: 1e-7, count: 9007199254740991 })]),
  'cut in a value': (family: ParserFamily) => cutAt(family, 'middle', 3),
  'cut after a value': (family: ParserFamily) => cutAt(family, 'last', 4),
  'cut before its end': (family: ParserFamily) => dropEnd(family.write([ls])),
  'the second call cut': (family: ParserFamily) => {
    if (family.isSingle) return undefined;
    const text = family.write([ls, call({ command: 'second', count: 1 })]);
    return text.slice(0, text.indexOf('second') + 3);
  },
  'only its first mark': (family: ParserFamily) => family.write([ls]).slice(0, Math.max(1, family.write([ls]).indexOf('bash'))),
  'broken arguments': (family: ParserFamily) => family.write([ls]).replace(/ls -l(?:"|'|<[^<>]*>)?/, 'ls -l'),
  reasoning: (family: ParserFamily) => think(family, 'I should look.', say(family, 'The answer is 42.')),
  'reasoning before a call': (family: ParserFamily) => think(family, 'I should look.', family.write([ls])),
  'reasoning that the prompt opened': (family: ParserFamily) =>
    family.think && !/channel|to=self|content_thinking|open/.test(family.think[0])
      ? `I should look.${family.think[1]}\n\n${family.write([ls])}`
      : undefined,
  'a call in reasoning': (family: ParserFamily) => think(family, `Maybe ${family.write([ls])} or not.`, say(family, 'No.')),
  'a call in reasoning, and one after it': (family: ParserFamily) =>
    think(family, `Maybe ${family.write([call({ command: 'rm' })])} or not.`, family.write([ls])),
} satisfies Record<string, (family: ParserFamily) => string | undefined>;

export type CaseKind = keyof typeof kinds;
const thinkingKinds: ReadonlySet<string> = new Set(Object.keys(kinds).filter((kind) => kind.includes('reasoning')));

const caseKinds: readonly CaseKind[] = Object.keys(kinds).filter((kind): kind is CaseKind => kind in kinds);

function think({ think: tags }: ParserFamily, thought: string, rest: string): string | undefined {
  return tags && `${tags[0]}${thought}${tags[1]}${rest}`;
}

/** The mark that ends a call. */
function closing(family: ParserFamily): string {
  return /(?:<\/[^<>]*>|<[^<>]*>|\])\s*$/.exec(family.write([ls]))?.[0].trim() ?? '}';
}

export function makeParserCases(): ParserCase[] {
  return families.flatMap((family, at) =>
    caseKinds.flatMap((kind) => {
      const text = kinds[kind](family);
      return text === undefined ? [] : [{ family: at, kind, text, thinks: thinkingKinds.has(kind) }];
    }),
  );
}
