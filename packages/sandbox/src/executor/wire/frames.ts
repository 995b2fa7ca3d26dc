// The worker's frame codec of the executor wire: two uint32 lengths, a JSON head, raw bytes. A reader buffers at most one frame,
// and rejects a frame over its limits before reading it.

export interface Frame {
  readonly head: unknown;
  readonly body: Buffer;
}

interface FrameLimits {
  readonly headBytes: number;
  readonly bodyBytes: number;
}

const lengthBytes = 8;

export function encodeFrame(head: unknown, body: Buffer = Buffer.alloc(0)): Buffer {
  const headBytes = Buffer.from(JSON.stringify(head));
  const lengths = Buffer.alloc(lengthBytes);
  lengths.writeUInt32BE(headBytes.length, 0);
  lengths.writeUInt32BE(body.length, 4);
  return Buffer.concat([lengths, headBytes, body]);
}

/** Returns a function that takes chunks and returns the frames that they complete. It throws on an oversized frame or a head that is not JSON. */
export function openFrameReader(limits: FrameLimits): (chunk: Buffer) => Frame[] {
  let chunks: Buffer[] = [];
  let held = 0;
  let wanted = lengthBytes;

  function takeFrame(): Frame | undefined {
    if (held < wanted) return undefined;
    const bytes = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
    chunks = [bytes];
    const headLength = bytes.readUInt32BE(0);
    const bodyLength = bytes.readUInt32BE(4);
    if (headLength > limits.headBytes || bodyLength > limits.bodyBytes) {
      throw new Error(`a frame of ${headLength} + ${bodyLength} bytes exceeds the limit of ${limits.headBytes} + ${limits.bodyBytes}`);
    }
    wanted = lengthBytes + headLength + bodyLength;
    if (held < wanted) return undefined;
    const head: unknown = JSON.parse(bytes.toString('utf8', lengthBytes, lengthBytes + headLength));
    const body = bytes.subarray(lengthBytes + headLength, wanted);
    const rest = bytes.subarray(wanted);
    chunks = rest.length > 0 ? [rest] : [];
    held = rest.length;
    wanted = lengthBytes;
    return { head, body };
  }

  return (chunk) => {
    chunks.push(chunk);
    held += chunk.length;
    const frames: Frame[] = [];
    for (let frame = takeFrame(); frame; frame = takeFrame()) frames.push(frame);
    return frames;
  };
}
