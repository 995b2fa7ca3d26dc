// Claims about the configuration and its description.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfig } from '../src/config.ts';
import { renderConfigDoc } from '../src/config-doc.ts';

test('docs/configuration.md is what the schemas say', async () => {
  const written = await readFile(new URL('../../../docs/configuration.md', import.meta.url), 'utf8');
  assert.equal(written, renderConfigDoc(), 'write it anew: node scripts/write-docs.ts');
});

test('every field of the configuration is described', () => {
  const bare = renderConfigDoc()
    .split('\n')
    .filter((line) => /^\| `.*\|\s*\|$/.test(line));
  assert.deepEqual(bare, []);
});

test('a file is read, and what the command line says lies over it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-config-'));
  const path = join(folder, 'millrace.json');
  await writeFile(path, JSON.stringify({ data: 'here', http: { port: 1 }, pipeline: { runSlots: 3 } }));
  const config = readConfig(path, { 'http.port': 2, data: undefined, workers: 5 });
  assert.deepEqual([config.data, config.http.port, config.pipeline.runSlots, config.workers], ['here', 2, 3, 5]);
  await rm(folder, { recursive: true });
});

test('an unknown field is refused by its name', () => {
  assert.throws(() => readConfig(undefined, { 'pipeline.runSlot': 3 }), /Unrecognized key: "runSlot"[\s\S]*pipeline/);
});

test('a file that is not JSON is refused by its path', async () => {
  const path = join(await mkdtemp(join(tmpdir(), 'millrace-config-')), 'broken.json');
  await writeFile(path, '{');
  assert.throws(
    () => readConfig(path),
    (error: Error) => error.message.includes(path),
  );
  assert.throws(() => readConfig('/no/such/file.json'), /\/no\/such\/file\.json could not be read: ENOENT/);
});
