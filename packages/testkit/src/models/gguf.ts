// Writes a GGUF file: metadata, then tensors in half or single precision. It supports only what a small model needs.

import { writeFile } from 'node:fs/promises';

export type GgufValue =
  | { readonly kind: 'uint32' | 'float32'; readonly value: number }
  | { readonly kind: 'bool'; readonly value: boolean }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'strings'; readonly value: readonly string[] }
  | { readonly kind: 'int32s'; readonly value: Int32Array };

export interface GgufTensor {
  readonly name: string;
  /** The fastest-changing dimension first. */
  readonly dimensions: readonly number[];
  readonly data: Float16Array | Float32Array;
}

const valueTypes = { uint32: 4, int32s: 9, float32: 6, bool: 7, string: 8, strings: 9 } as const;
const elementTypes = { int32s: 5, strings: 8 } as const;
const alignment = 32;

export async function writeGguf(
  path: string,
  metadata: Readonly<Record<string, GgufValue>>,
  tensors: readonly GgufTensor[],
): Promise<void> {
  const entries = Object.entries(metadata);
  const head: Buffer[] = [Buffer.from('GGUF'), uint32(3), uint64(tensors.length), uint64(entries.length)];
  for (const [key, value] of entries) head.push(string(key), uint32(valueTypes[value.kind]), writeValue(value));
  let offset = 0;
  for (const { name, dimensions, data } of tensors) {
    const type = data instanceof Float16Array ? 1 : 0;
    head.push(string(name), uint32(dimensions.length), ...dimensions.map(uint64), uint32(type), uint64(offset));
    offset += data.byteLength + padding(data.byteLength);
  }
  const written = Buffer.concat(head);
  const bodies = tensors.flatMap(({ data }) => [
    Buffer.from(data.buffer, data.byteOffset, data.byteLength),
    Buffer.alloc(padding(data.byteLength)),
  ]);
  await writeFile(path, [written, Buffer.alloc(padding(written.length)), ...bodies]);
}

function writeValue(value: GgufValue): Buffer {
  switch (value.kind) {
    case 'uint32':
      return uint32(value.value);
    case 'float32': {
      const buffer = Buffer.alloc(4);
      buffer.writeFloatLE(value.value);
      return buffer;
    }
    case 'bool':
      return Buffer.of(value.value ? 1 : 0);
    case 'string':
      return string(value.value);
    case 'strings':
      return Buffer.concat([uint32(elementTypes.strings), uint64(value.value.length), ...value.value.map(string)]);
    case 'int32s':
      return Buffer.concat([uint32(elementTypes.int32s), uint64(value.value.length), Buffer.from(value.value.buffer)]);
  }
}

function string(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([uint64(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32LE(value);
  return buffer;
}

function uint64(value: number): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64LE(BigInt(value));
  return buffer;
}

function padding(bytes: number): number {
  return (alignment - (bytes % alignment)) % alignment;
}
