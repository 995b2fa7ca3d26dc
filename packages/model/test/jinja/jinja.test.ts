// Templates render as in Python: each expected text was written by Jinja2 3.1.6 with the options of transformers. The world tier compares
// all published templates (world/models/templates.test.ts).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseExactJson, parseRemembered } from '../../src/jinja/exact-json.ts';
import { JinjaTemplate, TemplateRaised } from '../../src/jinja/jinja.ts';

const render = (source: string, variables: Record<string, unknown> = {}) => new JinjaTemplate(source).render(variables);
const cases = (rows: readonly (readonly [string, string])[], variables: Record<string, unknown> = {}) => {
  for (const [source, expected] of rows) assert.equal(render(source, variables), expected, source);
};

test('text before break and continue is kept', () => {
  cases([
    ['{% for i in range(4) %}{{ i }}{% if i == 1 %}x{% continue %}{% endif %}y{% endfor %}', '0y1x2y3y'],
    ['{% for i in range(4) %}{{ i }}{% if i == 2 %}x{% break %}{% endif %}y{% endfor %}z', '0y1y2xz'],
  ]);
});

test('values print as in Python', () => {
  cases([
    [
      '{{ true }} {{ False }} {{ none }} {{ 1.0 }} {{ 1e16 }} {{ 0.00001 }} {{ 12345678901234567890 }}',
      'True False None 1.0 1e+16 1e-05 12345678901234567890',
    ],
    ['{{ [1, "a", none, 2.5, {"k": "it\'s"}] }} {{ (1,) }}', `[1, 'a', None, 2.5, {'k': "it's"}] (1,)`],
    ['{{ missing }}|{{ 7 // 2 }}|{{ -7 // 2 }}|{{ -7 % 3 }}|{{ 7 / 2 }}|{{ 2 ** 70 }}', '|3|-4|2|3.5|1180591620717411303424'],
    ['{{ "a" ~ 1 ~ none }}{{ "ab" * 2 }}{{ [1] + [2] }}', 'a1Noneabab[1, 2]'],
  ]);
});

test('tojson is json.dumps', () => {
  cases(
    [
      ['{{ empty | tojson(indent=4) }} {{ [] | tojson(indent=2) }}', '{} []'],
      ['{{ v | tojson }}', '{"a": [1, 2.0, true, null], "é": "<\\u0001\\n\\"\u2028>"}'],
      ['{{ v | tojson(ensure_ascii=true) }}', '{"a": [1, 2.0, true, null], "\\u00e9": "<\\u0001\\n\\"\\u2028>"}'],
      ['{{ {"b": [1], "a": 2} | tojson(indent=1, sort_keys=true) }}', '{\n "a": 2,\n "b": [\n  1\n ]\n}'],
      ["{{ [1, 2] | tojson(separators=(',', ':')) }}", '[1,2]'],
    ],
    { empty: {}, v: parseExactJson('{"a": [1, 2.0, true, null], "é": "<\\u0001\\n\\"\u2028>"}') },
  );
});

test('numbers and keys of JSON keep their form on the way to a template', () => {
  const data = parseRemembered('{"10": 1.0, "2": 12345678901234567890, "b": {"1": [1e2]}}');
  assert.equal(render('{{ v | tojson }}', { v: data }), '{"10": 1.0, "2": 12345678901234567890, "b": {"1": [100.0]}}');
  assert.deepEqual(data, { 2: Number('12345678901234567890'), 10: 1, b: { 1: [100] } });
});

test('positions count code points', () => {
  cases(
    [
      [
        '{{ v[1] }}{{ v[-1] }}{{ v[9] }}|{{ v[1:3] }}|{{ v[-2:] }}|{{ v[:-1] }}|{{ v[3:1] }}|{{ v[::-1] }}|{{ v[::2] }}',
        '😀c|😀b|bc|a😀b||cb😀a|ab',
      ],
      [
        "{{ v.find('b') }} {{ v.find('b', 3) }} {{ v.rfind('c') }} {{ v.startswith('b', 2) }} {{ v.startswith('c', -1) }} {{ v | length }}",
        '2 -1 3 True True 4',
      ],
      ['{{ "😀" < "\uffff" }} {{ "a" < "ab" }} {{ "😀a" > "😀" }} {{ v | center(7) }}|', 'False True True   a😀bc |'],
    ],
    { v: 'a😀bc' },
  );
});

test('text is cut into words and lines as in Python', () => {
  cases(
    [
      [
        "{{ ' a  b '.split(none, 1) }} {{ 'a,b,'.split(',') }} {{ 'a,b,c'.rsplit(',', 1) }} {{ '  '.split() }} {{ 'abcd'[3:1] }}{{ 'abcd'[1:9] }}",
        "['a', 'b '] ['a', 'b', ''] ['a,b', 'c'] [] bcd",
      ],
      [
        '{{ t.splitlines() }} {{ t.splitlines(true) }} {{ "".splitlines() }}',
        "['a', '', 'b', 'c'] ['a\\r\\n', '\\n', 'b\\x85', 'c\\n'] []",
      ],
      ['{{ t | indent(2) }}|{{ t | indent("$&", true, true) }}|', 'a\n\n  b\n  c\n|$&a\n$&\n$&b\n$&c\n$&|'],
      [
        '{{ "²3" .isdigit() }} {{ "".isdigit() }} {{ "a1".isalpha() }} {{ "élan".capitalize() }}{{ "ÀB".capitalize() }}',
        'True False False ÉlanÀb',
      ],
      ['{{ "<a href=\'x\'>&\\"" | e }}', '&lt;a href=&#39;x&#39;&gt;&amp;&#34;'],
    ],
    { t: 'a\r\n\nb\u0085c\n' },
  );
});

test('white space is what Python calls white space', () => {
  cases([
    ['[{{ "\ufeff a \ufeff" | trim }}]', '[\ufeff a \ufeff]'],
    ['[{{ "\u0085\u001c a\u0085" | trim }}]', '[a]'],
    ['[{{ " a  b\tc " .split() }}]', "[['a', 'b', 'c']]"],
    ['[{{ "xxaxx".strip("x") }}{{ "<think>a</think>b".split("</think>")[-1] }}]', '[ab]'],
  ]);
});

test('tags that are alone on a line leave no line, and signs control white space', () => {
  cases([
    ['a\n  {% if true %}\nb\n  {% endif %}\nc\n', 'a\nb\nc'],
    ['a\n  {%+ if true %}\nb{%- endif -%}  \n c', 'a\n  b' + 'c'],
    ['{{ 1 }}\n{# note #}\n{{- 2 }}', '1\n2'],
    ['{% raw %}{{ x }}{% endraw %}', '{{ x }}'],
  ]);
});

test('scopes, namespaces, macros and loops work as in Jinja2', () => {
  cases([
    ['{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{% endfor %}{{ x }}', '1'],
    ['{% set n = namespace(x=1) %}{% for i in [1] %}{% set n.x = 2 %}{% endfor %}{{ n.x }}', '2'],
    [
      '{% macro m(a, b=2) %}{{ a }}{{ b }}{{ caller() if caller }}{% endmacro %}{{ m(1) }}{{ m(1, b=none) }}{% call m(3) %}!{% endcall %}',
      '121None32!',
    ],
    ['{% for k, v in {"a": 1, "b": 2}.items() if v > 1 %}{{ loop.index }}{{ k }}{{ loop.last }}{% else %}none{% endfor %}', '1bTrue'],
    ['{% for i in [] %}{% else %}none{% endfor %}{% set y %}a{{ 1 }}{% endset %}{{ y | upper }}', 'noneA1'],
    ['{{ [{"r": "a"}, {"r": "b"}] | selectattr("r", "equalto", "b") | map(attribute="r") | join(",") }}', 'b'],
    ['{{ "x" if missing is defined else "y" }}{{ missing is not none }}{{ (missing or "d") | length }}', 'yTrue1'],
    ['{{ {"items": 1}["items"] }}{{ {"get": 1}.get("get") }}{{ "abcdef"[1:-1:2] }}{{ [1, 2, 3][::-1] }}', '11bd[3, 2, 1]'],
    ['{{ 1 < 2 < 3 }}{{ not 1 == 2 }}{{ "a" in "abc" and 2 not in [1] }}', 'TrueTrueTrue'],
    ['{{ "a\nb\n\nc" | indent(2) }}|{{ "a" | indent(2, true) }}', 'a\n  b\n\n  c|  a'],
  ]);
});

test('what the reference refuses is refused, with the line', () => {
  assert.throws(
    () => render('{{ raise_exception("no " ~ 1) }}'),
    (error) => error instanceof TemplateRaised && error.message === 'no 1',
  );
  assert.throws(() => render('\n{{ missing.x }}'), /line 2: 'missing' is undefined/);
  assert.throws(() => render('{% set _ = [].append(1) %}'), /unsafe/);
  assert.throws(() => render('{{ "a" + 1 }}'), /unsupported operand/);
  assert.throws(() => render('{{ missing | tojson }}'), /not JSON serializable/);
  assert.throws(() => new JinjaTemplate('\n{% if x %}'), /line 2: .*endif/);
  assert.throws(() => new JinjaTemplate('{% include "x" %}'), /cannot use/);
});
