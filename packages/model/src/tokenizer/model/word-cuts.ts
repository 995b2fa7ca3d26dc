// SentencePiece vocabularies have no pre-tokenizer, so a whole text is one piece. It can be split before the mark of a word wherever no merge
// joins the character before the mark with the mark: no token ever crosses that place, so the ids are the same, and words are cached.

const mark = '▁';
const marksPerStep = 8192;

/** Yields undefined when a step is over. `joined` are the last code units of all left halves of merges whose right half starts with the mark. */
export function makeWordCuts(joined: ReadonlySet<number>): (piece: string) => Iterable<string | undefined> {
  return function* (piece) {
    let begin = 0;
    let marks = 0;
    for (let at = piece.indexOf(mark, 1); at >= 0; at = piece.indexOf(mark, at + 1)) {
      if (++marks % marksPerStep === 0) yield undefined;
      if (joined.has(piece.charCodeAt(at - 1))) continue;
      yield piece.slice(begin, at);
      begin = at;
    }
    yield piece.slice(begin);
  };
}

export function isMarked(text: string): boolean {
  return text.startsWith(mark);
}
