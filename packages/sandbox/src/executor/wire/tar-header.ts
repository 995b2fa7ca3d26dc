// The headers of tar archives that the worker sends.

export const tarBlockBytes = 512;

interface TarHeader {
  /** A folder's name ends with a slash. */
  readonly name: string;
  readonly mode: number;
  /** `0` is a file, `2` a link, `5` a folder. */
  readonly type: '0' | '2' | '5' | 'g' | 'x';
  readonly size: number;
  /** Of a link; empty otherwise. */
  readonly target: string;
}

/** One header. A long name or a large size comes in an extended header before it. */
export function renderTarHeader(header: TarHeader): Buffer {
  const { name, target, size } = header;
  const long: [string, string][] = [];
  if (Buffer.byteLength(name) > 100) long.push(['path', name]);
  if (Buffer.byteLength(target) > 100) long.push(['linkpath', target]);
  if (size >= 8 ** 11) long.push(['size', String(size)]);
  const plain = renderBlock(header);
  if (long.length === 0) return plain;
  const records = Buffer.from(long.map(([key, value]) => renderRecord(key, value)).join(''));
  const extended = renderBlock({ name: 'long-names', mode: 0o644, type: 'x', size: records.length, target: '' });
  return Buffer.concat([extended, records, renderTarPadding(records.length), plain]);
}

/** A header with a text that tar programs ignore; the first of an archive. */
export function renderTarComment(text: string): Buffer {
  const record = Buffer.from(renderRecord('comment', text));
  const header = renderBlock({ name: 'comment', mode: 0o644, type: 'g', size: record.length, target: '' });
  return Buffer.concat([header, record, renderTarPadding(record.length)]);
}

/** The zeros that fill the last block of this many bytes. */
export function renderTarPadding(bytes: number): Buffer {
  return Buffer.alloc((tarBlockBytes - (bytes % tarBlockBytes)) % tarBlockBytes);
}

/** A record starts with its length, which includes the digits of the length itself. */
function renderRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  const length = rest + String(rest + String(rest).length).length;
  return `${length} ${key}=${value}\n`;
}

function renderBlock({ name, mode, type, size, target }: TarHeader): Buffer {
  const block = Buffer.alloc(tarBlockBytes);
  const octal = (value: number, digits: number) => (value % 8 ** digits).toString(8).padStart(digits, '0');
  block.write(name, 0, 100);
  block.write(octal(mode & 0o777, 7), 100);
  block.write(`${octal(0, 7)}\0${octal(0, 7)}\0${octal(size, 11)}\0${octal(0, 11)}\0        ${type}`, 108);
  block.write(target, 157, 100);
  block.write('ustar\x0000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 6)}\0 `, 148);
  return block;
}
