// The file editor in a real sandbox: what the model reads, and what the file contains afterwards.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { silentLog } from '@millrace/base/log';
import { openBubblewrapDriver, probeBubblewrap, type Sandbox } from '@millrace/sandbox';
import { makeTempFolder, type TempFolder } from '@millrace/testkit/plain';
import { makeEditorTool } from '../../src/tools/editor-tool.ts';

const probe = await probeBubblewrap();
const timeoutMs = 10_000;

describe('str_replace_editor', { skip: probe.ok ? false : probe.reason }, () => {
  const tool = makeEditorTool();
  let folder: TempFolder;
  let sandbox: Sandbox;
  before(async () => {
    folder = await makeTempFolder('editor');
    sandbox = await (await openBubblewrapDriver({ runDir: folder.path, log: silentLog })).open({});
  });
  after(async () => {
    await sandbox[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });
  async function call(command: string, path: string, rest: Record<string, unknown> = {}): Promise<string> {
    const answer = await tool.run({ command, path, ...rest }, { sandbox, timeoutMs, signal: new AbortController().signal });
    assert.equal(answer.kind, 'text');
    return answer.kind === 'text' ? answer.text : '';
  }
  const content = async (path: string) => (await sandbox.readFile(path, { maxBytes: 1000 })).toString('utf8');

  test('create makes a file and its folders, and undo removes it', async () => {
    assert.equal(await call('create', '/workspace/new/file', { file_text: 'one\ntwo\n' }), '/workspace/new/file was created');
    assert.equal(await content('new/file'), 'one\ntwo\n');
    assert.match(await call('undo_edit', '/workspace/new/file'), /removed/);
    await assert.rejects(content('new/file'), { code: 'not-found' });
    assert.match(await call('undo_edit', '/workspace/new/file'), /no edit of/);
  });

  test('str_replace replaces text that occurs exactly once and keeps the mode; otherwise it says how often the text occurs', async () => {
    await sandbox.writeFile('code', 'a\nb\na\nc', { mode: 0o755 });
    assert.match(await call('str_replace', '/workspace/code', { old_str: 'a', new_str: 'x' }), /occurs 2 times, on lines 1, 3/);
    assert.match(await call('str_replace', '/workspace/code', { old_str: 'zz', new_str: 'x' }), /does not occur/);
    assert.match(await call('str_replace', '/workspace/code', { old_str: '', new_str: 'x' }), /is empty/);
    const answer = await call('str_replace', '/workspace/code', { old_str: 'b\na', new_str: '$& new\nlines' });
    assert.match(answer, /^\/workspace\/code was edited\. The new text:\n {5}1\ta\n {5}2\t\$& new\n {5}3\tlines\n {5}4\tc$/);
    assert.equal(await content('code'), 'a\n$& new\nlines\nc');
    assert.equal((await sandbox.runShell('stat -c %a code', { timeoutMs })).output, '755\n');
    await call('str_replace', '/workspace/code', { old_str: 'c' });
    await call('undo_edit', '/workspace/code');
    await call('undo_edit', '/workspace/code');
    assert.equal(await content('code'), 'a\nb\na\nc');
  });

  test('insert adds text after its line, at the start and at the end, and refuses a line past the end', async () => {
    await sandbox.writeFile('list', '1\n2\n');
    await call('insert', '/workspace/list', { insert_line: 0, new_str: '0' });
    await call('insert', '/workspace/list', { insert_line: 3, new_str: '3\n' });
    assert.equal(await content('list'), '0\n1\n2\n3\n');
    assert.match(await call('insert', '/workspace/list', { insert_line: 5, new_str: 'x' }), /the file has 4 lines/);
    await sandbox.writeFile('open', 'last');
    await call('insert', '/workspace/open', { insert_line: 0, new_str: 'first\n' });
    assert.equal(await content('open'), 'first\nlast');
  });

  test('view shows numbered lines, a range, an empty file, and a folder two levels deep', async () => {
    await sandbox.writeFile('tree/.hidden/x', '');
    await sandbox.writeFile('tree/a/b/c', 'one\ntwo\nthree\n');
    assert.equal(await call('view', '/workspace/tree/a/b/c'), '     1\tone\n     2\ttwo\n     3\tthree');
    assert.equal(await call('view', '/workspace/tree/a/b/c', { view_range: [2, -1] }), '     2\ttwo\n     3\tthree');
    assert.match(await call('view', '/workspace/tree/a/b/c', { view_range: [4, 5] }), /the file has 3 lines/);
    assert.match(await call('view', '/workspace/tree/.hidden/x'), /is empty/);
    assert.match(await call('view', '/workspace/tree'), /:\n\/workspace\/tree\/a\/\n\/workspace\/tree\/a\/b\/$/);
    assert.match(await call('view', '/workspace/tree/.hidden'), /:\n\/workspace\/tree\/.hidden\/x$/);
  });

  test('a file that cannot be edited is refused with a sentence for the model', async () => {
    await sandbox.runShell('printf "a\\0b" > binary; printf "\\xff" > latin; head -c 3000000 /dev/zero > large; mkfifo pipe', {
      timeoutMs,
    });
    const refusals: [string, Record<string, unknown>, RegExp][] = [
      ['code', {}, /not an absolute path; did you mean \/workspace\/code\?/],
      ['/workspace/none', {}, /does not exist/],
      ['/workspace/binary', {}, /not a text file/],
      ['/workspace/latin', {}, /not a text file/],
      ['/workspace/large', {}, /more than 2097152 bytes/],
      ['/workspace/pipe', {}, /not a regular file/],
      ['/workspace/pipe', { command: 'create', file_text: 'x' }, /not a regular file/],
      ['/workspace', { command: 'create', file_text: 'x' }, /EISDIR|not a regular file/],
      ['/usr/new', { command: 'create', file_text: 'x' }, /EROFS|EACCES/],
      ['/workspace/a', { command: 'create' }, /needs file_text/],
      ['/workspace/a', { command: 'rename' }, /command/],
    ];
    for (const [path, rest, expected] of refusals) assert.match(await call('view', path, rest), expected, path);
  });

  test('a long file is cut, and the result says how to see more', async () => {
    await sandbox.writeFile('long', 'line\n'.repeat(20_000));
    assert.match(await call('view', '/workspace/long'), /\n\[\.\.\. \d+ characters left out: use view_range \.\.\.\]\n/);
  });
});
