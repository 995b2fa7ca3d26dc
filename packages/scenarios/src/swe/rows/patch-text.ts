// Patches as text: turns one around, for data sets whose patch puts the bug into the repository, and writes one from two contents of a file.

/** The patch that undoes this one. Binary parts cannot be turned around: throws an Error. */
export function reversePatch(patch: string): string {
  if (/^GIT binary patch$/m.test(patch)) throw new Error('patch has a binary file, which cannot be turned around');
  const lines = patch.split('\n');
  const turned: string[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    const next = lines[at + 1] ?? '';
    if (line.startsWith('--- ') && next.startsWith('+++ ')) {
      turned.push(`--- ${swapSide(next.slice(4))}`, `+++ ${swapSide(line.slice(4))}`);
      at += 1;
    } else if (line.startsWith('-')) {
      // A hunk lists what is removed before what is added.
      const removed = takeWhile(lines, at, '-');
      const added = takeWhile(lines, at + removed.length, '+');
      turned.push(...added.map((one) => withSign(one, '-')), ...removed.map((one) => withSign(one, '+')));
      at += removed.length + added.length - 1;
    } else turned.push(turnLine(line));
  }
  return turned.join('\n');
}

/** The lines that start with this sign, with a note on a missing line break. */
function takeWhile(lines: readonly string[], from: number, sign: string): string[] {
  const taken: string[] = [];
  for (let at = from; (lines[at] ?? '').startsWith(sign) || (taken.length > 0 && (lines[at] ?? '').startsWith('\\')); at += 1)
    taken.push(lines[at] ?? '');
  return taken;
}

/** A note on a missing line break stays as it is. */
const withSign = (line: string, sign: string): string => (line.startsWith('\\') ? line : `${sign}${line.slice(1)}`);

function turnLine(line: string): string {
  const [, before, after, rest = ''] = /^@@ -(\S+) \+(\S+) @@(.*)$/.exec(line) ?? [];
  if (before !== undefined) return `@@ -${after} +${before} @@${rest}`;
  const [, from, to] = /^diff --git a\/(.*) b\/(.*)$/s.exec(line) ?? [];
  if (from !== undefined) return `diff --git a/${to} b/${from}`;
  const [, old, fresh, mode = ''] = /^index ([0-9a-f]+)\.\.([0-9a-f]+)(.*)$/s.exec(line) ?? [];
  if (old !== undefined) return `index ${fresh}..${old}${mode}`;
  if (line.startsWith('+')) return `-${line.slice(1)}`;
  const [, word, rename] = /^(new file mode|deleted file mode|old mode|new mode|rename from|rename to) (.*)$/.exec(line) ?? [];
  return word === undefined ? line : `${opposite[word]} ${rename}`;
}

const opposite: Readonly<Record<string, string>> = {
  'new file mode': 'deleted file mode',
  'deleted file mode': 'new file mode',
  'old mode': 'new mode',
  'new mode': 'old mode',
  'rename from': 'rename to',
  'rename to': 'rename from',
};

const swapSide = (path: string): string => path.replace(/^([ab])\//, (_, side) => (side === 'a' ? 'b/' : 'a/'));

/** The patch that replaces the whole content of a file. Empty means that there is no file. */
export function replacePatch(path: string, before: string, after: string): string {
  if (before === after) return '';
  const kind = before === '' ? ['new file mode 100644'] : after === '' ? ['deleted file mode 100644'] : [];
  const head = [
    `diff --git a/${path} b/${path}`,
    ...kind,
    `--- ${before === '' ? '/dev/null' : `a/${path}`}`,
    `+++ ${after === '' ? '/dev/null' : `b/${path}`}`,
  ];
  const [removed, added] = [toLines(before, '-'), toLines(after, '+')];
  return `${[...head, `@@ -${rangeOf(before)} +${rangeOf(after)} @@`, ...removed, ...added].join('\n')}\n`;
}

const linesIn = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'));
const rangeOf = (text: string): string => (text === '' ? '0,0' : `1,${linesIn(text).length}`);

function toLines(text: string, sign: string): string[] {
  const lines = linesIn(text).map((line) => `${sign}${line}`);
  return text === '' || text.endsWith('\n') ? lines : [...lines, '\\ No newline at end of file'];
}
