// The body of a reply as text. A long one keeps its beginning and its end in memory, and never more.

const keptBytes = 64 * 1024;
/** A server that sends more than this is not listened to any longer. */
const maxBytes = 32 << 20;

interface ReplyText {
  readonly text: string;
  readonly totalBytes: number;
}

/** Throws the reason of the signal, or what broke the connection. */
export async function readReply(reply: Response): Promise<ReplyText> {
  const head: Uint8Array[] = [];
  let headBytes = 0;
  let tail: Buffer = Buffer.alloc(0);
  let totalBytes = 0;
  if (!reply.body) return { text: '', totalBytes };
  for await (const chunk of reply.body) {
    totalBytes += chunk.length;
    const room = keptBytes - headBytes;
    if (room > 0) head.push(chunk.subarray(0, room));
    headBytes += Math.min(room, chunk.length);
    if (chunk.length > room) tail = lastBytes(Buffer.concat([tail, chunk.subarray(Math.max(0, room))]));
    if (totalBytes > maxBytes) break; // leaving the loop closes the connection
  }
  const left = totalBytes - headBytes - tail.length;
  const end = totalBytes > maxBytes ? `\n[... the reply is longer than ${maxBytes} bytes: the rest was not read]` : '';
  if (left === 0) return { text: Buffer.concat([...head, tail]).toString('utf8') + end, totalBytes };
  return { text: `${Buffer.concat(head).toString('utf8')}\n[... ${left} bytes left out ...]\n${tail.toString('utf8')}${end}`, totalBytes };
}

function lastBytes(bytes: Buffer): Buffer {
  return bytes.length > keptBytes ? Buffer.from(bytes.subarray(bytes.length - keptBytes)) : bytes;
}
