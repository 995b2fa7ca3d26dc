// The characters that stand for bytes in a byte-level vocabulary.

/** The letter of each byte: the byte itself if it is printable, otherwise the next character from U+0100. */
export const byteLetters: readonly string[] = makeByteLetters();

const bytesOfLetters: ReadonlyMap<string, number> = new Map(byteLetters.map((letter, byte) => [letter, byte]));

function makeByteLetters(): string[] {
  let free = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    return String.fromCharCode(isPrintable ? byte : free++);
  });
}

const letterCodes: Uint16Array = Uint16Array.from(byteLetters, (letter) => letter.charCodeAt(0));
/** Up to this length, adding letter to letter is faster. */
const shortLength = 64;

export function toLetters(bytes: Uint8Array): string {
  if (bytes.length > shortLength) return toLongLetters(bytes);
  let letters = '';
  for (const byte of bytes) letters += byteLetters[byte] ?? '';
  return letters;
}

function toLongLetters(bytes: Uint8Array): string {
  const letters = Buffer.allocUnsafe(2 * bytes.length);
  for (let at = 0; at < bytes.length; at++) letters.writeUInt16LE(letterCodes[bytes[at] ?? 0] ?? 0, 2 * at);
  return letters.toString('utf16le');
}

/** A token with a character that stands for no byte is plain text. */
export function fromLetters(token: string): Buffer {
  const bytes: number[] = [];
  for (const letter of token) {
    const byte = bytesOfLetters.get(letter);
    if (byte === undefined) return Buffer.from(token);
    bytes.push(byte);
  }
  return Buffer.from(bytes);
}
