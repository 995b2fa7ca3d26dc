// Claims about docs/troubleshooting.md, so that it keeps up with the error table.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { errorCodes } from '@millrace/protocol';

const page = await readFile(new URL('../../../../docs/troubleshooting.md', import.meta.url), 'utf8');

test('every error code has its row in the troubleshooting page', () => {
  const missing = errorCodes.filter((code) => !page.includes(`\n| \`${code}\` |`));
  assert.deepEqual(missing, []);
});

test('every link inside the page leads to a heading', () => {
  const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
  const targets = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, target = '']) => target);
  assert.deepEqual(
    targets.filter((target) => !headings.includes(target)),
    [],
  );
});
