// Text of agents as it may be shown: characters that act on a screen instead of standing on it are replaced by a name of them. Without
// this, a right-to-left override turns a line around, and invisible characters hide what a text says.

/** Control and format characters, and separators of lines: overrides of direction, invisible spaces and tags are among them. */
const acting = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Line feeds and tabs are layout; joiners are part of emoji and of some scripts. */
const kept: ReadonlySet<string> = new Set(['\n', '\t', '\u200c', '\u200d']);

export function toHarmless(text: string): string {
  return text.replace(acting, (character) => (kept.has(character) ? character : nameOf(character)));
}

function nameOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

/** One token as it is shown: line feeds and tabs are visible too. */
export function toVisibleToken(text: string): string {
  return toHarmless(text).replace(/\n/g, '⏎').replace(/\t/g, '⇥');
}
