// A unified diff as lines with numbers.

interface PatchLine {
  readonly kind: 'file' | 'hunk' | 'add' | 'remove' | 'same' | 'note';
  readonly text: string;
  readonly before?: number;
  readonly after?: number;
}

export function isPatch(text: string): boolean {
  return /^(diff --git |--- [^\n]*\n\+\+\+ )/m.test(text) && /^@@ -\d/m.test(text);
}

export function parsePatch(text: string): PatchLine[] {
  let [before, after, inHunk] = [0, 0, false];
  return text
    .replace(/\n$/, '')
    .split('\n')
    .map((line): PatchLine => {
      const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line);
      if (hunk !== null) {
        [before, after, inHunk] = [Number(hunk[1]), Number(hunk[2]), true];
        return { kind: 'hunk', text: line };
      }
      if (/^(diff --git |index |new file|deleted file|similarity |rename )/.test(line)) {
        inHunk = false;
        return { kind: 'file', text: line };
      }
      if (!inHunk) return { kind: /^(---|\+\+\+) /.test(line) ? 'file' : 'note', text: line };
      if (line.startsWith('+')) return { kind: 'add', text: line.slice(1), after: after++ };
      if (line.startsWith('-')) return { kind: 'remove', text: line.slice(1), before: before++ };
      if (line.startsWith('\\')) return { kind: 'note', text: line };
      return { kind: 'same', text: line.slice(1), before: before++, after: after++ };
    });
}
