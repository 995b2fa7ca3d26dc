// What the model reads after a command.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ShellResult } from '@millrace/sandbox';
import { renderShellResult } from '../../src/tools/bash-tool.ts';

const result = (fields: Partial<ShellResult>): ShellResult => ({
  end: 'exited',
  exitCode: 0,
  output: '',
  totalBytes: 0,
  cutBytes: 0,
  ms: 1,
  ...fields,
});

const rendered: [string, ShellResult, string][] = [
  ['the output of a successful command is shown alone, without its last newline', result({ output: 'a\nb\n' }), 'a\nb'],
  ['no output is shown as such', result({}), '[no output]'],
  ['a non-zero exit code is shown', result({ exitCode: 2, output: 'oops\n' }), 'oops\n[exit code 2]'],
  ['a timeout is shown', result({ end: 'timeout', output: 'x' }), 'x\n[not done after 5 s: interrupted with Ctrl-C]'],
  [
    'the end of the shell is shown',
    result({ end: 'shell-exited', exitCode: 3 }),
    '[the shell ended with exit code 3; a new shell was started, its variables are gone]',
  ],
  [
    'a broken shell is shown, with what is lost',
    result({ end: 'shell-broken' }),
    '[the shell stopped working, because of this command or an earlier one, and this command may not have run; a new shell was started in the same directory: variables, functions and aliases are gone]',
  ],
];

for (const [claim, shell, text] of rendered) test(claim, () => assert.equal(renderShellResult(shell, 5000), text));
