// Characters that act on a screen are shown by their names.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHarmless, toVisibleToken } from '../src/logic/harmless.ts';

test('right-to-left overrides, invisible characters and controls are named', () => {
  assert.equal(toHarmless('a\u202eb\u202c'), 'a⟨U+202E⟩b⟨U+202C⟩');
  assert.equal(toHarmless('a\u200bb\ufeffc\u2066d'), 'a⟨U+200B⟩b⟨U+FEFF⟩c⟨U+2066⟩d');
  assert.equal(toHarmless('\u0000\u0007\u001b\u007f\u009b'), '␀␇␛␡⟨U+009B⟩');
  assert.equal(toHarmless('hidden \u{e0041}'), 'hidden ⟨U+E0041⟩');
});

test('ordinary text of any script stays as it is', () => {
  for (const text of ['line\n\ttab', 'שלום', 'العربية', '👩‍💻', 'naïve <b>x</b> & "y"']) assert.equal(toHarmless(text), text);
});

test('a token shows its line feeds and tabs', () => {
  assert.equal(toVisibleToken('}\n\t'), '}⏎⇥');
});
