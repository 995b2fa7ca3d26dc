// Claims about the configuration and its page in the documentation.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTempFolder } from '@millrace/testkit/plain';
import { readConfig } from '../src/config.ts';
import { renderConfigDoc } from '../src/config-doc.ts';

test('docs/configuration.md says what the schemas say', async () => {
  const written = await readFile(new URL('../../../docs/configuration.md', import.meta.url), 'utf8');
  assert.equal(written, renderConfigDoc(), 'write it again: node scripts/write-docs.ts');
});

test('every user who generates the page gets the same one', async () => {
  await using folder = await makeTempFolder('config');
  await chmod(folder.path, 0o755);
  const module = new URL('../src/config-doc.ts', import.meta.url).href;
  const program = `process.setuid?.(Number(process.env.AS_UID)); const { renderConfigDoc } = await import('${module}'); process.stdout.write(renderConfigDoc());`;
  // Only root may become someone else; every other user is already a different one from the one who wrote the page.
  const uid = process.getuid?.() === 0 ? 12_345 : process.getuid?.();
  const env = { HOME: folder.path, TMPDIR: folder.path, XDG_DATA_HOME: folder.path, XDG_CACHE_HOME: folder.path, AS_UID: String(uid) };
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { env, encoding: 'utf8' });
  assert.equal(stdout, renderConfigDoc(), stderr);
});

test('the ten settings to know come first on the page, and every setting is there', () => {
  const page = renderConfigDoc();
  const [, first = ''] = page.split(/^## .*\n/m);
  assert.equal(first.match(/^\| `/gm)?.length, 10);
  for (const name of ['data', 'workers', 'inference.breakAfter', 'slurm.partition', 'slurm.llm.nodes'])
    assert.match(page, new RegExp(`\\| \`${name}\` \\|`));
});

test('no default on the page is a path of this machine', () => {
  assert.doesNotMatch(renderConfigDoc(), /\| `"\//);
});

test('every field of the configuration is described', () => {
  const bare = renderConfigDoc()
    .split('\n')
    .filter((line) => /^\| `.*\|\s*\|$/.test(line));
  assert.deepEqual(bare, []);
});

test('options of the command line win over the file', async () => {
  await using folder = await makeTempFolder('config');
  const path = join(folder.path, 'millrace.json');
  await writeFile(path, JSON.stringify({ data: 'here', http: { port: 1 }, pipeline: { runSlots: 3 } }));
  const config = readConfig(path, { 'http.port': 2, data: undefined, workers: 5 });
  assert.deepEqual([config.data, config.http.port, config.pipeline.runSlots, config.workers], ['here', 2, 3, 5]);
});

test('an unknown field is refused by name, with the one that was probably meant', () => {
  assert.throws(() => readConfig(undefined, { 'pipeline.runSlot': 3 }), /pipeline\.runSlot: unknown field; did you mean runSlots\?/);
});

test('a file that is not JSON is refused by its path', async () => {
  await using folder = await makeTempFolder('config');
  const path = join(folder.path, 'broken.json');
  await writeFile(path, '{');
  assert.throws(
    () => readConfig(path),
    (error: Error) => error.message.includes(path),
  );
  assert.throws(() => readConfig('/no/such/file.json'), /\/no\/such\/file\.json could not be read: ENOENT/);
});
