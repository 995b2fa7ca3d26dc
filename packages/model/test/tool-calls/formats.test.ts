// One family after another: what its parser reads, cut and malformed calls, and that hostile text neither makes it throw nor takes long.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeRandom } from '@millrace/testkit/plain';
import { toolFormats } from '../../src/tool-calls/tool-calls.ts';
import { findToolParser } from '../../src/tool-calls/tool-parsers.ts';
import { rows, tools } from './format-rows.ts';

for (const [format, text, calls, { content = '', reasoning, malformed } = {}] of rows) {
  test(`${format}: ${JSON.stringify(text.slice(0, 60))} is read`, () => {
    const parsed = findToolParser(format).parse(text, tools);
    assert.deepEqual(
      parsed.calls.map((call) => [call.name, call.arguments]),
      calls,
    );
    assert.equal(parsed.content, content);
    assert.equal(parsed.reasoning, reasoning);
    assert.equal(parsed.malformed.length, malformed ? 1 : 0, parsed.malformed.join());
    if (malformed) assert.match(parsed.malformed[0] ?? '', malformed);
  });
}

const marks = [...new Set(rows.flatMap(([, text]) => text.match(/<[^<>]{1,60}>|\[\/?[A-Z_]+\]|```\w*|[[\](){}"'=:,\\]|\w+/g) ?? []))];

for (const format of toolFormats) {
  test(`${format}: no mixture of marks makes it throw, and a long one is read in linear time`, () => {
    const { parse } = findToolParser(format);
    const random = makeRandom(7);
    const pick = () => marks[Math.floor(random() * marks.length)] ?? '';
    for (let round = 0; round < 400; round++) {
      const text = Array.from({ length: 1 + Math.floor(random() * 24) }, pick).join(round % 2 === 0 ? '' : '\n');
      assert.ok(JSON.stringify(parse(text, tools)).length > 0, text);
    }
    const own = rows.filter(([name]) => name === format).flatMap(([, text]) => text.match(/<[^<>]{1,60}>/g) ?? []);
    for (const piece of [...new Set([...own, '{', '[', '"', ' ', '[bash('])]) {
      const before = process.threadCpuUsage();
      parse(piece.repeat(2 ** 17 / piece.length), tools);
      const { user, system } = process.threadCpuUsage(before);
      assert.ok((user + system) / 1e3 < 1500, `${JSON.stringify(piece)} took ${(user + system) / 1e3} ms`);
    }
  });
}
