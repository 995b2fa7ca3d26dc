// Which experts each token was routed to, as reported by servers of mixture models: for every token of prompt and answer except the
// last, which no forward pass has processed. A report that does not cover exactly these tokens is refused. Reports are megabytes long:
// they are taken out of the reply as bytes and decoded in steps, so that no other call waits for them.

import type { RoutedExperts } from '@millrace/protocol';
import type { Steps } from '../../../base/pace.ts';
import { refuse } from './bad-reply.ts';

/** `npy`: vLLM's .npy of tokens × layers × experts. `raw`: SGLang's int32 without a shape, so the numbers of one token are one row. */
export type ExpertsFormat = 'npy' | 'raw';

const fieldName = Buffer.from('"routed_experts":');
const [quote, space] = [0x22, 0x20];

export interface TakenExperts {
  /** The reply, with an empty text in place of the experts. */
  readonly rest: Buffer;
  /** In base64. Absent if the reply has none. */
  readonly experts?: Buffer;
  /** The experts begin, but do not end. */
  readonly isPartial?: true;
}

/** Takes the experts out of a reply or of the events of a stream. */
export function takeExperts(reply: Buffer): TakenExperts {
  for (let at = reply.indexOf(fieldName); at >= 0; at = reply.indexOf(fieldName, at + 1)) {
    let begin = at + fieldName.length;
    while (reply[begin] === space) begin += 1;
    if (begin >= reply.length) return { rest: reply, isPartial: true };
    if (reply[begin] !== quote) continue;
    const end = reply.indexOf(quote, begin + 1);
    if (end < 0) return { rest: reply, isPartial: true };
    return { rest: Buffer.concat([reply.subarray(0, begin + 1), reply.subarray(end)]), experts: reply.subarray(begin + 1, end) };
  }
  return { rest: reply };
}

export interface WantedExperts {
  /** How many tokens have experts: all of prompt and answer but the last. */
  readonly tokens: number;
  /** The first of them that were not asked for, because an earlier turn has them, with the shape of a row. */
  readonly known?: { readonly tokens: number; readonly shape: readonly number[] } | undefined;
}

/** In steps of about a millisecond. */
export function* decodeExperts(experts: Buffer | undefined, format: ExpertsFormat, wanted: WantedExperts): Steps<RoutedExperts> {
  if (experts === undefined || experts.length === 0)
    throw refuse('no routed experts, which were asked for; the server must be started with --enable-return-routed-experts');
  const bytes = yield* decodeBase64(experts);
  return yield* format === 'npy' ? parseNpyExperts(bytes, wanted) : parseRawExperts(bytes, wanted);
}

function* parseNpyExperts(bytes: Buffer, { tokens, known }: WantedExperts): Steps<RoutedExperts> {
  const isLong = bytes[6] !== 1;
  const start = isLong ? 12 : 10;
  if (bytes.toString('latin1', 0, 6) !== '\x93NUMPY' || bytes.length < start) throw refuse('routed experts that are not a .npy file');
  const end = start + (isLong ? bytes.readUInt32LE(8) : bytes.readUInt16LE(8));
  const head = bytes.toString('latin1', start, end);
  const type = /'descr': '([<|][iu][1248])'/.exec(head)?.[1] ?? '';
  const sizes = /'shape': \(([\d, ]+)\)/.exec(head)?.[1]?.split(',') ?? [];
  const [rows, ...shape] = sizes.flatMap((size) => (size.trim() === '' ? [] : [Number(size)]));
  if (type === '' || rows === undefined || shape.length !== 2 || !head.includes("'fortran_order': False"))
    throw refuse(`routed experts in an unsupported layout: ${head.trim()}`);
  // Versions that do not know how to skip rows send all of them.
  const from = known && rows === tokens - known.tokens ? known.tokens : 0;
  return yield* toExperts({ bytes: bytes.subarray(end), width: Number(type.at(-1)), shape, tokens, from });
}

function* parseRawExperts(bytes: Buffer, { tokens, known }: WantedExperts): Steps<RoutedExperts> {
  const all = known ? 4 * tokens * productOf(known.shape) : -1;
  const from = known && bytes.length !== all ? known.tokens : 0;
  const perToken = tokens === from ? 0 : bytes.length / 4 / (tokens - from);
  if (known && perToken !== productOf(known.shape))
    throw refuse(`${bytes.length} bytes of routed experts, which is not ${tokens - from} tokens of ${known.shape.join(' × ')} numbers`);
  return yield* toExperts({ bytes, width: 4, shape: [perToken], tokens, from });
}

interface Raw {
  readonly bytes: Buffer;
  readonly width: number;
  readonly shape: readonly number[];
  readonly tokens: number;
  readonly from: number;
}

/** Numbers that are decoded in one step, which takes well below a millisecond. */
const stepNumbers = 1 << 17;

/** Each id takes one byte if all fit, otherwise two. */
function* toExperts({ bytes, width, shape, tokens, from }: Raw): Steps<RoutedExperts> {
  const perToken = productOf(shape);
  const rows = tokens - from;
  if (!Number.isInteger(perToken) || perToken === 0 || bytes.length !== width * perToken * rows)
    throw refuse(`${bytes.length} bytes of routed experts, which is not ${rows} tokens of ${shape.join(' × ')} numbers of ${width} bytes`);
  if (width === 1) return { from, shape: [...shape], ids: new Uint8Array(bytes) };
  const ids = new Uint16Array(perToken * rows);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let most = 0;
  for (let at = 0; at < ids.length; at += stepNumbers) {
    const end = Math.min(at + stepNumbers, ids.length);
    for (let i = at; i < end; i++) {
      const id = width === 2 ? view.getUint16(2 * i, true) : view.getUint32(width * i, true);
      if (id > 0xffff || (width === 8 && view.getUint32(8 * i + 4, true) !== 0)) throw refuse(`${id} as a routed expert`);
      ids[i] = id;
      if (id > most) most = id;
    }
    yield;
  }
  if (most > 0xff) return { from, shape: [...shape], ids };
  const small = new Uint8Array(ids.length);
  for (let at = 0; at < ids.length; at += stepNumbers) {
    small.set(ids.subarray(at, at + stepNumbers), at);
    yield;
  }
  return { from, shape: [...shape], ids: small };
}

/** A multiple of four, so that each step decodes whole groups. */
const stepCharacters = 1 << 18;

function* decodeBase64(text: Buffer): Steps<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(Math.ceil((text.length * 3) / 4));
  let length = 0;
  for (let at = 0; at < text.length; at += stepCharacters) {
    length += bytes.write(text.toString('latin1', at, Math.min(at + stepCharacters, text.length)), length, 'base64');
    yield;
  }
  return bytes.subarray(0, length);
}

function productOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}
