// Finds the regular expressions in a source file: literals, and `new RegExp` with a constant text. A small scanner of tokens is enough,
// since the formatter writes a regular expression only where a value can stand.

export interface FoundPattern {
  readonly source: string;
  readonly flags: string;
  readonly line: number;
}

export interface FoundPatterns {
  readonly patterns: readonly FoundPattern[];
  /** Lines of `new RegExp` whose text is made at run time. */
  readonly made: readonly { readonly line: number; readonly text: string }[];
}

const space = /\s+|\/\/.*|\/\*[\s\S]*?\*\//y;
const quoted = /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y;
const literal = /\/((?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([a-z]*)/y;
const word = /[\p{ID_Start}$_#][\p{ID_Continue}$]*|\d[\w.]*/uy;
const templateText = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*/y;
const constructed = /RegExp\((?:'((?:[^'\\\n]|\\.)*)'|String\.raw`([^`$]*)`)(?:, '([a-z]*)')?\)/y;
const madeAtRunTime = /RegExp\([^;\n]*/y;
/** A slash after one of these starts a regular expression; after other words and closing brackets it divides. */
const beforeValue = new Set(['return', 'typeof', 'case', 'in', 'of', 'yield', 'await', 'else', 'do', 'void', 'delete', 'new']);

export function findPatterns(code: string): FoundPatterns {
  const patterns: FoundPattern[] = [];
  const made: { line: number; text: string }[] = [];
  const braces: ('block' | 'template')[] = [];
  let [at, canStart] = [0, true];
  const take = (pattern: RegExp) => {
    pattern.lastIndex = at;
    const match = pattern.exec(code);
    if (match) at += match[0].length;
    return match;
  };
  const lineAt = (index: number) => code.slice(0, index).split('\n').length;
  const takeTemplate = () => {
    take(templateText);
    canStart = code.startsWith('${', at);
    if (canStart) braces.push('template');
    at += canStart ? 2 : 1;
  };
  while (at < code.length) {
    const start = at;
    if (take(space)) continue;
    if (take(quoted)) canStart = false;
    else if (code.startsWith('RegExp(', at)) {
      const [, single, raw, flags = ''] = take(constructed) ?? [];
      if (at === start) made.push({ line: lineAt(start), text: take(madeAtRunTime)?.[0] ?? '' });
      else patterns.push({ source: raw ?? JSON.parse(`"${(single ?? '').replaceAll('"', '\\"')}"`), flags, line: lineAt(start) });
      canStart = false;
    } else if (code[at] === '`') {
      at += 1;
      takeTemplate();
    } else if (code[at] === '}' && braces.pop() === 'template') {
      at += 1;
      takeTemplate();
    } else if (canStart && code[at] === '/') {
      const [, source = '', flags = ''] = take(literal) ?? [];
      if (at === start) throw new Error(`line ${lineAt(start)}: this slash starts no regular expression`);
      patterns.push({ source, flags, line: lineAt(start) });
      canStart = false;
    } else {
      const [name] = take(word) ?? [];
      if (name === undefined) {
        if (code[at] === '{') braces.push('block');
        canStart = !/[)\]}]/.test(code[at] ?? '');
        at += 1;
      } else canStart = beforeValue.has(name);
    }
  }
  return { patterns, made };
}
