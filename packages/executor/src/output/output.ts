// The output cap: keeps the head and the tail of a stream of any length in constant memory, and counts the bytes in between.

export interface KeptOutput {
  readonly head: Buffer;
  readonly tail: Buffer;
  readonly totalBytes: number;
  /** Bytes missing between head and tail. */
  readonly cutBytes: number;
}

export interface OutputCap {
  push(chunk: Buffer): void;
  /** Never cuts inside a UTF-8 character: the bytes of a partial character count as missing. */
  end(): KeptOutput;
}

export function openOutputCap(capBytes: number): OutputCap {
  const headCap = Math.ceil(capBytes / 2);
  const ring = Buffer.alloc(Math.floor(capBytes / 2));
  const head: Buffer[] = [];
  let headBytes = 0;
  let totalBytes = 0;

  function pushTail(chunk: Buffer, at: number): void {
    const piece = chunk.length > ring.length ? chunk.subarray(chunk.length - ring.length) : chunk;
    if (piece.length === 0) return;
    const start = (at + chunk.length - piece.length) % ring.length;
    const fits = Math.min(piece.length, ring.length - start);
    piece.copy(ring, start, 0, fits);
    piece.copy(ring, 0, fits);
  }

  return {
    push(chunk) {
      const toHead = chunk.subarray(0, headCap - headBytes);
      if (toHead.length > 0) head.push(Buffer.from(toHead));
      headBytes += toHead.length;
      pushTail(chunk.subarray(toHead.length), totalBytes + toHead.length - headBytes);
      totalBytes += chunk.length;
    },
    end() {
      const tailTotal = totalBytes - headBytes;
      const full = tailTotal > ring.length;
      const start = ring.length === 0 ? 0 : tailTotal % ring.length;
      const tail = full ? Buffer.concat([ring.subarray(start), ring.subarray(0, start)]) : Buffer.from(ring.subarray(0, tailTotal));
      const whole = Buffer.concat(head);
      if (!full) return { head: whole, tail, totalBytes, cutBytes: 0 };
      const kept = { head: dropOpenCharacter(whole), tail: dropContinuation(tail) };
      return { ...kept, totalBytes, cutBytes: totalBytes - kept.head.length - kept.tail.length };
    },
  };
}

function dropOpenCharacter(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}

function dropContinuation(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return bytes.subarray(start);
}
