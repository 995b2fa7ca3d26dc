// The scripts of `millrace completion` know every command, action and option; bash runs its own.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { isGroup } from '../../src/command/command.ts';
import { commands } from '../../src/main.ts';
import { millrace, openIo } from '../fake-io.ts';

const scriptFor = async (shell: string) => (await millrace(['completion', shell], openIo())).out;

/** What bash offers after these words, the last of which is being typed. */
function complete(script: string, words: readonly string[]): string[] {
  const line = words.map((word) => `'${word}'`).join(' ');
  const { stdout, stderr } = spawnSync(
    'bash',
    ['--norc', '-c', `${script}\nCOMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _millrace; printf '%s\\n' "\${COMPREPLY[@]}"`],
    { encoding: 'utf8' },
  );
  assert.equal(stderr, '');
  return stdout.split('\n').filter(Boolean);
}

test('bash completes commands, actions and options', async () => {
  const script = await scriptFor('bash');
  assert.deepEqual(complete(script, ['millrace', 'ba']), ['backend', 'batch']);
  assert.deepEqual(complete(script, ['millrace', 'backend', 'a']), ['add']);
  assert.ok(complete(script, ['millrace', 'backend', 'add', 'http://x', '--d']).includes('--dialect'));
  assert.deepEqual(complete(script, ['millrace', 'serve', '--driv']), ['--driver']);
  assert.deepEqual(complete(script, ['millrace', 'submit', 'tasks']), []);
});

test('every command, action and option is in the script of each shell', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const words = new Set((await scriptFor(shell)).match(/[a-z][a-z-]*/g));
    for (const [name, { load }] of Object.entries(commands)) {
      const loaded = await load();
      const all = isGroup(loaded) ? Object.entries(loaded.actions) : ([[name, loaded]] as const);
      for (const [action, { options }] of all)
        for (const word of [name, action, ...Object.keys(options)]) assert.ok(words.has(word), `${shell}: ${word} of ${name}`);
    }
  }
});

test('a shell without a script is a usage error that names those with one', async () => {
  const { code, err } = await millrace(['completion', 'tcsh'], openIo());
  assert.equal(code, 2);
  assert.match(err, /no completion for tcsh; there is bash, zsh, fish/);
});
