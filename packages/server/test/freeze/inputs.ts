// Texts that are made to be slow: a beginning, one part again and again, and an end, of the fragments that the readers look for. They are
// kept as their parts, so that a megabyte is a line of a file.

/** Each part with how often it is repeated. */
export type FreezeInput = readonly (readonly [part: string, count: number])[];

export const renderInput = (input: FreezeInput): string => input.map(([part, count]) => part.repeat(count)).join('');

const fragments: readonly string[] = [
  ...[
    'a',
    '1',
    '0',
    ' ',
    '\n',
    '\t',
    '\r',
    '.',
    ',',
    ':',
    '"',
    "'",
    '\\',
    '/',
    '-',
    '+',
    '=',
    '_',
    '*',
    '$',
    '#',
    '`',
    '(',
    ')',
    '[',
    ']',
    '{',
    '}',
    '<',
    '>',
    '|',
  ],
  ...[
    'é',
    '✓',
    '\u2028',
    '\ud83d\ude00',
    '\ud83d',
    '\0',
    'E',
    'F',
    'ok',
    '1e9',
    '0.5',
    '((',
    '}}',
    '{{',
    '{%',
    '\\\\',
    '\\"',
    'null',
    '[1,',
    '{"a":',
    '"a"',
    '1,',
  ],
  ...[
    '<think>',
    '</think>',
    '<tool_call>',
    '</tool_call>',
    '{"name":',
    '"arguments":{',
    '{"name":"bash","arguments":{}}',
    '<function=bash>',
    '</function>',
  ],
  ...[
    '<parameter=command>',
    '</parameter>',
    '<parameter=',
    '<function=',
    '<invoke name="bash">',
    '<invoke name="',
    '</invoke>',
    '[TOOL_CALLS]',
    '[ARGS]',
    '<|python_tag|>',
  ],
  ...[
    '<arg_key>a</arg_key>',
    '<arg_value>',
    '<arg_key>',
    '```',
    '```json\n',
    '```python\n',
    '~~~',
    'bash(',
    "command='",
    '[bash(',
    '<｜tool▁call▁begin｜>',
    '<｜tool▁sep｜>',
  ],
  ...[
    '<｜tool▁call▁end｜>',
    '<｜tool▁calls▁begin｜>',
    '<|tool_call_begin|>',
    '<|channel|>',
    '<|message|>',
    '<|call|>',
    'to=functions.bash',
    '>>>bash\n',
    '<bash>',
    '</bash>',
  ],
  ...[
    'PASSED',
    'FAILED',
    'a::b ',
    ' PASSED ',
    '--- PASS: ',
    ' (',
    ' (1 ms)',
    '(0.1s)',
    '[ OK ]',
    'test ',
    ' ... ',
    ' ... ok',
    '-Dtest=',
    'BUILD SUCCESS',
    ' > ',
    '✔ ',
    '.py:',
    '____ ',
  ],
  ...[
    '. ',
    ' = ',
    ' in ',
    'pass ',
    '[junit] ',
    'ok 1 ',
    ' - passed',
    'Testing against Django installed in ',
    ' silenced).\nok',
    'diff --git a/',
    ' b/',
    '\n+++ b/',
    'SKIPPED [1]',
  ],
  ...[
    '\\boxed{',
    '\\frac{',
    '\\sqrt{',
    '\\{',
    '\\}',
    '\\left(',
    '\\text{',
    '\\pi',
    '^{',
    '\\circ',
    'The answer is',
    'answer:',
    '####',
    '\\cup',
    '\\times10^',
    '\\begin{pmatrix}',
    '&',
    'and ',
    'or ',
    'm/s',
    '(A)',
    'x=',
  ],
  ...[
    '$(',
    '$((',
    '$' + '{a:-',
    '<<A\n',
    'if true; then ',
    'fi;',
    'case x in ',
    'esac;',
    '[[ ',
    ' ]]',
    'a && ',
    'a | ',
    'judged ',
    '$ANSWER',
    'x=$x;',
  ],
  ...[
    '[],',
    '{},',
    '"",',
    '"a":1,',
    '{"a":',
    '[[',
    ']]',
    'assert f(1) == 2\n',
    'def check(candidate):\n',
    'NaN,',
    '-1,',
    '12345678901234567890,',
  ],
];

export type Random = () => number;

const pick = (random: Random, list: readonly string[]): string => list[Math.floor(random() * list.length)] ?? '';

/** Up to three fragments; sometimes with a character of the result doubled, dropped or replaced. */
function makePart(random: Random): string {
  const part = Array.from({ length: 1 + Math.floor(random() * 3) }, () => pick(random, fragments)).join('');
  if (random() < 0.7) return part;
  const at = Math.floor(random() * part.length);
  const kind = Math.floor(random() * 3);
  return `${part.slice(0, at)}${kind === 0 ? '' : kind === 1 ? part.slice(at, at + 1).repeat(2) : pick(random, fragments)}${part.slice(at + 1)}`;
}

/** What opens and what closes, and items of lists: texts that a grammar accepts are read to their end. */
const pairs: readonly (readonly [string, string])[] = [
  ['$(', ')'],
  ['$' + '{a:-', '}'],
  ['{', '}'],
  ['(', ')'],
  ['[', ']'],
  ['{"a":', '}'],
  ['\\frac{1}{', '}'],
  ['\\{', '\\}'],
  ['\\boxed{', '}'],
  ['<think>', '</think>'],
  ['if true; then ', '; fi'],
  ['case x in x) ', ';; esac'],
];
const items = ['[],', '{},', '"",', '1,', '{"a":1},', '12345678901234567890,', '-0.5e3,', '"\\u0000\\n",', '[[1]],', 'null,'];
const lists: readonly (readonly [string, string])[] = [
  ['[', '1]'],
  ['{"a":[', '1]}'],
  ['{"rollouts":[', '{}]}'],
  ['{"inputs":[', '1],"outputs":[1]}'],
];

function makeByGrammar(random: Random, length: number): FreezeInput {
  const choose = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  if (random() < 0.5) {
    const [open, close] = choose(pairs);
    const count = Math.ceil(length / (open.length + close.length));
    return [
      [open, count],
      [pick(random, fragments), 1],
      [close, count],
    ];
  }
  const [[open, close], item] = [choose(lists), choose(items)];
  return [
    [open, 1],
    [item, Math.ceil(length / item.length)],
    [close, 1],
  ];
}

export function makeInput(random: Random, length: number): FreezeInput {
  if (random() < 0.3) return makeByGrammar(random, length);
  const [head, pump, tail] = [makePart(random), makePart(random) || 'a', makePart(random)];
  const count = Math.max(1, Math.floor(length / pump.length));
  if (random() < 0.7)
    return [...(random() < 0.8 ? [[head, 1] as const] : []), [pump, count], ...(random() < 0.8 ? [[tail, 1] as const] : [])];
  // Opened and closed: nested text.
  return [
    [head, 1],
    [pump, Math.ceil(count / 2)],
    [makePart(random), Math.ceil(count / 2)],
    [tail, 1],
  ];
}

/** Another head, pump or tail for an input that was slow. */
export function mutateInput(random: Random, input: FreezeInput): FreezeInput {
  const at = Math.floor(random() * input.length);
  return input.map(([part, count], index) => (index === at ? [makePart(random) || part, count] : [part, count]));
}
