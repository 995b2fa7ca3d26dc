// Base64 from bytes to bytes. Node decodes strings only, and a string of megabytes is garbage of the same size.

import { refuse } from './bad-reply.ts';

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const noDigit = 0x80;
const values = new Uint8Array(256).fill(noDigit);
for (let value = 0; value < digits.length; value++) values[digits.charCodeAt(value)] = value;
const padding = 0x3d;

/** How many bytes the parts of a text stand for. */
export function base64Bytes(parts: readonly Uint8Array[]): number {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const end = Buffer.concat(parts.slice(-2).map((part) => part.subarray(-2)));
  const padded = end.at(-1) === padding ? (end.at(-2) === padding ? 2 : 1) : 0;
  return (length / 4) * 3 - padded;
}

/** The parts of a text, each as long as the scratch but for the last. Each is gone when the next is asked for. */
export function* groupsOf(parts: readonly Uint8Array[], scratch: Buffer): Generator<Buffer, void, void> {
  let filled = 0;
  for (const part of parts)
    for (let at = 0; at < part.length; ) {
      const piece = part.subarray(at, at + scratch.length - filled);
      scratch.set(piece, filled);
      at += piece.length;
      filled += piece.length;
      if (filled < scratch.length) continue;
      yield scratch;
      filled = 0;
    }
  if (filled > 0) yield scratch.subarray(0, filled);
}

/** Returns the number of bytes. Throws `backend-bad-reply` at any character that does not belong there. */
export function decodeBase64(text: Uint8Array, into: Uint8Array): number {
  const bytes = base64Bytes([text]);
  if (!Number.isInteger(bytes)) throw refuse('a text in base64 whose length is not a multiple of four');
  const whole = bytes % 3 === 0 ? text.length : text.length - 4;
  const valueAt = (i: number) => values[text[i] ?? 0] ?? noDigit;
  let [seen, at] = [0, 0];
  for (let i = 0; i < whole; i += 4) {
    const a = valueAt(i);
    const b = valueAt(i + 1);
    const c = valueAt(i + 2);
    const d = valueAt(i + 3);
    seen |= a | b | c | d;
    into[at++] = (a << 2) | (b >> 4);
    into[at++] = (b << 4) | (c >> 2);
    into[at++] = (c << 6) | d;
  }
  if (whole < text.length) {
    const [a, b, c] = [valueAt(whole), valueAt(whole + 1), bytes % 3 === 2 ? valueAt(whole + 2) : 0];
    seen |= a | b | c;
    into[at++] = (a << 2) | (b >> 4);
    if (bytes % 3 === 2) into[at] = (b << 4) | (c >> 2);
  }
  if ((seen & noDigit) !== 0) throw refuse('a character in base64 that is not one of its digits');
  return bytes;
}
