// Refuses bodies whose shape alone makes them slow to parse and to check, before they are parsed: too deep, or an object with too many
// fields. Reads each byte once.

const deepest = 100;
const mostFields = 10_000;

const [quote, backslash, colon] = [0x22, 0x5c, 0x3a];
const [openObject, closeObject, openArray, closeArray] = [0x7b, 0x7d, 0x5b, 0x5d];

/** Why the body is refused; undefined if it is not. The text need not be valid JSON. */
export function findShapeFault(body: Uint8Array): string | undefined {
  const fields = new Uint32Array(deepest + 2);
  let depth = 0;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at];
    if (byte === quote) at = endOfString(body, at);
    else if (byte === openObject || byte === openArray) {
      depth += 1;
      if (depth > deepest) return `the body is nested deeper than ${deepest} levels, at position ${at}`;
      fields[depth] = 0;
    } else if (byte === closeObject || byte === closeArray) depth = Math.max(0, depth - 1);
    else if (byte === colon) {
      fields[depth] = (fields[depth] ?? 0) + 1;
      if ((fields[depth] ?? 0) > mostFields) return `an object of the body has more than ${mostFields} fields, at position ${at}`;
    }
  }
  return undefined;
}

/** The place of the closing quote. */
function endOfString(body: Uint8Array, from: number): number {
  for (let at = from + 1; at < body.length; at += 1) {
    if (body[at] === backslash) at += 1;
    else if (body[at] === quote) return at;
  }
  return body.length;
}
