// Which experts each token was routed to, as reported by servers of mixture models: for every token of prompt and answer except the
// last, which no forward pass has processed. A report that does not cover exactly these tokens is refused. Reports are megabytes long:
// they are decoded in steps, so that no other call waits for them, and with little memory other than the result: what the garbage collector
// has to free holds up the event loop too.

import type { Steps } from '@millrace/base/pace';
import type { RoutedExperts } from '@millrace/protocol';
import { refuse } from './bad-reply.ts';
import { base64Bytes, decodeBase64, groupsOf } from './base64.ts';

/** `npy`: vLLM's .npy of tokens × layers × experts. `raw`: SGLang's int32 without a shape, so the numbers of one token are one row. */
export type ExpertsFormat = 'npy' | 'raw';

export interface WantedExperts {
  /** How many tokens have experts: all of prompt and answer but the last. */
  readonly tokens: number;
  /** The first of them that were not asked for, because an earlier turn has them, with the shape of a row. */
  readonly known?: { readonly tokens: number; readonly shape: readonly number[] } | undefined;
}

/** From base64, in steps of about a millisecond. */
export function* decodeExperts(experts: readonly Buffer[] | undefined, format: ExpertsFormat, wanted: WantedExperts): Steps<RoutedExperts> {
  if (experts === undefined || base64Bytes(experts) === 0)
    throw refuse('no routed experts, which were asked for; the server must be started with --enable-return-routed-experts');
  const layout = format === 'npy' ? readNpyLayout(experts, wanted) : readRawLayout(experts, wanted);
  const { offset, width, shape, from } = layout;
  const [rows, perToken] = [wanted.tokens - from, productOf(shape)];
  const bytes = base64Bytes(experts) - offset;
  if (!Number.isInteger(perToken) || perToken === 0 || bytes !== width * perToken * rows)
    throw refuse(`${bytes} bytes of routed experts, which is not ${rows} tokens of ${shape.join(' × ')} numbers of ${width} bytes`);
  return { from, shape: [...shape], ids: yield* readIds(experts, { offset, width, count: perToken * rows }) };
}

interface Layout {
  /** Where the numbers begin, in bytes. */
  readonly offset: number;
  readonly width: number;
  /** Of the numbers of one token. */
  readonly shape: readonly number[];
  readonly from: number;
}

/** More than any head of a .npy file with three dimensions; a multiple of four. */
const headCharacters = 1 << 12;

function readNpyLayout(experts: readonly Buffer[], { tokens, known }: WantedExperts): Layout {
  const [text = Buffer.alloc(0)] = groupsOf(experts, Buffer.alloc(headCharacters));
  const bytes = Buffer.from(text.toString('latin1'), 'base64');
  const isLong = bytes[6] !== 1;
  const start = isLong ? 12 : 10;
  if (bytes.toString('latin1', 0, 6) !== '\x93NUMPY' || bytes.length < start) throw refuse('routed experts that are not a .npy file');
  const offset = start + (isLong ? bytes.readUInt32LE(8) : bytes.readUInt16LE(8));
  const head = bytes.toString('latin1', start, offset);
  const type = /'descr': '([<|][iu][1248])'/.exec(head)?.[1] ?? '';
  const sizes = /'shape': \(([\d, ]+)\)/.exec(head)?.[1]?.split(',') ?? [];
  const [rows, ...shape] = sizes.flatMap((size) => (size.trim() === '' ? [] : [Number(size)]));
  if (type === '' || rows === undefined || shape.length !== 2 || !head.includes("'fortran_order': False"))
    throw refuse(`routed experts in an unsupported layout: ${head.trim()}`);
  // Versions that do not know how to skip rows send all of them.
  const from = known && rows === tokens - known.tokens ? known.tokens : 0;
  return { offset, width: Number(type.at(-1)), shape, from };
}

function readRawLayout(experts: readonly Buffer[], { tokens, known }: WantedExperts): Layout {
  const bytes = base64Bytes(experts);
  const all = known ? 4 * tokens * productOf(known.shape) : -1;
  const from = known && bytes !== all ? known.tokens : 0;
  const perToken = tokens === from ? 0 : bytes / 4 / (tokens - from);
  if (known && perToken !== productOf(known.shape))
    throw refuse(`${bytes} bytes of routed experts, which is not ${tokens - from} tokens of ${known.shape.join(' × ')} numbers`);
  return { offset: 0, width: 4, shape: [perToken], from };
}

interface Numbers extends Pick<Layout, 'offset' | 'width'> {
  readonly count: number;
}

/** Each id takes one byte if all fit, otherwise two. */
function* readIds(
  experts: readonly Buffer[],
  { offset, width, count }: Numbers,
): Steps<Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer>> {
  let ids: Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer> = new Uint8Array(count);
  const scratch = new Uint8Array(scratchBytes);
  const view = new DataView(scratch.buffer);
  /** Bytes of the scratch that belong to no number yet: the head of the file, then the rest of a number. */
  let [skip, kept, done] = [offset, 0, 0];
  for (const text of groupsOf(experts, Buffer.allocUnsafeSlow(stepCharacters))) {
    const end = kept + decodeBase64(text, scratch.subarray(kept));
    let i = Math.min(skip, end);
    skip -= i;
    for (; i + width <= end; i += width) {
      const id = width === 1 ? (scratch[i] ?? 0) : width === 2 ? view.getUint16(i, true) : view.getUint32(i, true);
      if (id > 0xffff || (width === 8 && view.getUint32(i + 4, true) !== 0)) throw refuse(`${id} as a routed expert`);
      if (id > 0xff && ids instanceof Uint8Array) ids = yield* widen(ids);
      ids[done++] = id;
    }
    kept = end - i;
    scratch.copyWithin(0, i, end);
    yield;
  }
  return ids;
}

/** Numbers that are copied in one step, which takes well below a millisecond. */
const stepNumbers = 1 << 18;

function* widen(small: Uint8Array): Steps<Uint16Array<ArrayBuffer>> {
  const ids = new Uint16Array(small.length);
  for (let at = 0; at < small.length; at += stepNumbers) {
    ids.set(small.subarray(at, at + stepNumbers), at);
    yield;
  }
  return ids;
}

/** A multiple of four, so that each step decodes whole groups of digits. */
const stepCharacters = 1 << 18;
/** For one step, and the rest of a number from the step before. */
const scratchBytes = (stepCharacters / 4) * 3 + 8;

function productOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}
