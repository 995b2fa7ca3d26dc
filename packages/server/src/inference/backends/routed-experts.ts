// Which experts each token was routed to, as reported by servers of mixture models: for every token of prompt and answer except the
// last, which no forward pass has processed. A report that does not cover exactly these tokens is refused.

import type { RoutedExperts } from '@millrace/protocol';
import type { GenerateRequest, Generation } from './backend.ts';
import { refuse } from './wire.ts';

/** A request that asks for them must get them; only an aborted generation may lack them. */
export function addExperts(generation: Generation, request: GenerateRequest, parse: (tokens: number) => RoutedExperts): Generation {
  if (!request.sampling.routed_experts || generation.finishReason === 'abort') return generation;
  return { ...generation, routedExperts: parse(request.promptTokens + generation.tokenIds.length - 1) };
}

/** vLLM: a base64 .npy of tokens × layers × experts. */
export function parseNpyExperts(text: unknown, tokens: number): RoutedExperts {
  const bytes = toBytes(text);
  const isLong = bytes[6] !== 1;
  const start = isLong ? 12 : 10;
  if (bytes.toString('latin1', 0, 6) !== '\x93NUMPY' || bytes.length < start) throw refuse('routed experts that are not a .npy file');
  const end = start + (isLong ? bytes.readUInt32LE(8) : bytes.readUInt16LE(8));
  const head = bytes.toString('latin1', start, end);
  const type = /'descr': '([<|][iu][1248])'/.exec(head)?.[1] ?? '';
  const shape =
    /'shape': \(([\d, ]+)\)/
      .exec(head)?.[1]
      ?.split(',')
      .flatMap((size) => (size.trim() === '' ? [] : [Number(size)])) ?? [];
  if (type === '' || shape.length !== 3 || !head.includes("'fortran_order': False"))
    throw refuse(`routed experts in an unsupported layout: ${head.trim()}`);
  return toExperts({ bytes: bytes.subarray(end), width: Number(type.at(-1)), shape: shape.slice(1), tokens });
}

/** SGLang: base64 of int32 without the number of layers, so the numbers of one token are one row. */
export function parseRawExperts(text: unknown, tokens: number): RoutedExperts {
  const bytes = toBytes(text);
  return toExperts({ bytes, width: 4, shape: [tokens === 0 ? 0 : bytes.length / 4 / tokens], tokens });
}

interface Raw {
  readonly bytes: Buffer;
  readonly width: number;
  readonly shape: readonly number[];
  readonly tokens: number;
}

/** Each id takes one byte if all fit, otherwise two. */
function toExperts({ bytes, width, shape, tokens }: Raw): RoutedExperts {
  const perToken = shape.reduce((product, size) => product * size, 1);
  if (!Number.isInteger(perToken) || perToken === 0 || bytes.length !== width * perToken * tokens)
    throw refuse(
      `${bytes.length} bytes of routed experts, which is not ${tokens} tokens of ${shape.join(' × ')} numbers of ${width} bytes`,
    );
  const ids = new Uint16Array(perToken * tokens);
  let most = 0;
  for (let i = 0; i < ids.length; i++) {
    const id = width === 8 ? Number(bytes.readBigUInt64LE(8 * i)) : bytes.readUIntLE(width * i, width);
    if (id > 0xffff) throw refuse(`${id} as a routed expert`);
    ids[i] = id;
    most = Math.max(most, id);
  }
  return { from: 0, shape: [...shape], ids: most > 0xff ? ids : Uint8Array.from(ids) };
}

function toBytes(text: unknown): Buffer {
  if (typeof text !== 'string' || text === '')
    throw refuse('no routed experts, which were asked for; the server must be started with --enable-return-routed-experts');
  return Buffer.from(text, 'base64');
}
