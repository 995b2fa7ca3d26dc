// The executor's sources as sandboxes run them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toJavaScript } from '../../src/sandbox/executor-files.ts';

test('imports, exports and renamed names become CommonJS, and types go', () => {
  const source = `import { a, b as c, type D } from './x.ts';\nexport async function f(d: D): Promise<void> {}\nexport const g = 1;\n`;
  assert.match(toJavaScript(source), /const \{ a, b: c, ?\s*\} = require\('\.\/x\.js'\);/);
  assert.match(toJavaScript(source), /module\.exports = \{ f, g \};\n$/);
});

test('what is imported late is required late', () => {
  assert.match(toJavaScript("export async function f() {\n  const { a } = await import('x');\n}\n"), /const \{ a \} = require\('x'\);/);
});

test('a form that it cannot carry over is refused', () => {
  for (const source of ["import x from 'x';", 'export default 1;', "import * as x from 'x';", 'const x = import.meta.url;']) {
    assert.throws(() => toJavaScript(source), /not for sandboxes/);
  }
});
