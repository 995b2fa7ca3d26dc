// Splits a stream into lines. A line may come in many pieces; each piece is copied once.

/** Returns the function that takes the pieces. */
export function openLineReader(onLine: (line: Buffer) => void): (chunk: Buffer) => void {
  let pieces: Buffer[] = [];
  return (chunk) => {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      pieces.push(chunk.subarray(from, at));
      const line = pieces.length === 1 ? (pieces[0] ?? Buffer.alloc(0)) : Buffer.concat(pieces);
      pieces = [];
      from = at + 1;
      onLine(line);
    }
    if (from < chunk.length) pieces.push(chunk.subarray(from));
  };
}
