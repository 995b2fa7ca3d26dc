// The executor's sources as sandboxes run them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toJavaScript } from '../../src/sandbox/executor-bundle.ts';

test('imports, exports and renamed names become CommonJS, and types go', () => {
  const source = `import { a, b as c, type D } from './x.ts';\nexport async function f(d: D): Promise<void> {}\nexport const g = 1;\n`;
  assert.match(toJavaScript(source), /const \{ a, b: c, ?\s*\} = require\('\.\/x'\);/);
  assert.match(toJavaScript(source), /module\.exports = \{ f, g \};\n$/);
});

test('what is imported late is required late', () => {
  const late = (from: string) => toJavaScript(`export async function f() {\n  const { a } = await import('${from}');\n}\n`);
  assert.match(late('x'), /const \{ a \} = require\('x'\);/);
  assert.match(late('./x.ts'), /const \{ a \} = require\('\.\/x'\);/);
});

test('a form that it cannot carry over is refused', () => {
  for (const source of [
    "import x from 'x';",
    'export default 1;',
    "import * as x from 'x';",
    'const x = import.meta.url;',
    'const x = import(y);',
  ]) {
    assert.throws(() => toJavaScript(source), /not for sandboxes/);
  }
});
