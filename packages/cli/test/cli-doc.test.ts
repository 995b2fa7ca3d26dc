// docs/cli.md and the command table say the same.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { renderCliDoc } from '../src/cli-doc.ts';
import { commands } from '../src/main.ts';

test('docs/cli.md is what the command table says', async () => {
  const written = await readFile(new URL('../../../docs/cli.md', import.meta.url), 'utf8');
  assert.equal(written, await renderCliDoc(), 'write it again with: node scripts/write-docs.ts');
});

test('the list of commands says what each command says itself', async () => {
  for (const [name, { summary, load }] of Object.entries(commands)) {
    const own = (await load()).summary;
    assert.ok(own.startsWith(summary.replace(/\.$/, '')), `${name}: the list says "${summary}", and the command "${own}"`);
  }
});

test('every command in the documentation has an example', async () => {
  const chapters = (await renderCliDoc()).split(/^##+ millrace /m).slice(1);
  assert.ok(chapters.length > 15);
  for (const chapter of chapters.filter((text) => text.includes('```sh'))) {
    const [, lines = ''] = /```sh\n([\s\S]*?)```/.exec(chapter) ?? [];
    assert.match(lines, /\n\n.*millrace /, chapter.split('\n')[0]);
  }
});
