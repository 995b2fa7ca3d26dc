// What real engines replied, recorded by world/record.ts: the requests, and for each its status, headers and body or every event of its
// stream. Fakes are checked against these, and the real engines too, so that an upgrade that changes a reply shows.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const recordedRequest = z.strictObject({
  method: z.enum(['GET', 'POST']),
  path: z.string(),
  headers: z.record(z.string(), z.string()).optional(),
  body: z.unknown().optional(),
});
export type RecordedRequest = z.infer<typeof recordedRequest>;

const recordedReply = z.strictObject({
  status: z.int(),
  /** Without those that differ from reply to reply. */
  headers: z.record(z.string(), z.string()),
  /** One of three: parsed JSON, other text, or the events of a stream as they came, each with its `data: `. */
  body: z.unknown().optional(),
  text: z.string().optional(),
  events: z.array(z.string()).optional(),
  /**
   * - end: the reply was whole
   * - client: the client went away
   * - lost: the connection broke before the end of the reply
   */
  ended: z.enum(['end', 'client', 'lost']),
});
export type RecordedReply = z.infer<typeof recordedReply>;

const recordedExchange = z.strictObject({
  request: recordedRequest,
  /** What happened before it was sent, where it was not sent right after the one before it. */
  sent: z.string().optional(),
  /** Absent where no reply came; `nothing` says what was seen instead. */
  reply: recordedReply.optional(),
  nothing: z.string().optional(),
});
export type RecordedExchange = z.infer<typeof recordedExchange>;

const recording = z.strictObject({
  name: z.string(),
  says: z.string(),
  exchanges: z.array(recordedExchange).min(1),
});
export type Recording = z.infer<typeof recording>;

export const recordingFile = z.strictObject({
  engine: z.enum(['vllm', 'llamacpp']),
  version: z.string(),
  /** How the engine was started, as far as it matters to the replies. */
  started: z.string(),
  recordings: z.array(recording),
});
export type RecordingFile = z.infer<typeof recordingFile>;

/** A list of one number again and again, as a recorded request writes it: long prompts stay readable. */
export interface RepeatedEvent {
  readonly $repeat: number;
  readonly times: number;
}

/** The body as it was sent: with every `$repeat` written out. */
export function expandBody(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(expandBody);
  if (typeof body !== 'object' || body === null) return body;
  if (isRepeated(body)) return Array<number>(body.times).fill(body.$repeat);
  return Object.fromEntries(Object.entries(body).map(([key, value]) => [key, expandBody(value)]));
}

function isRepeated(value: object): value is RepeatedEvent {
  return '$repeat' in value && 'times' in value;
}

/** Where the recordings of an engine's version are. */
export function recordingsFolder(engine: RecordingFile['engine'], version: string): string {
  return join(import.meta.dirname, `${engine}-${version}`);
}

/** All files of an engine, of every version that was recorded. */
export function readRecordings(engine: RecordingFile['engine']): readonly RecordingFile[] {
  const folders = readdirSync(import.meta.dirname).filter((name) => name.startsWith(`${engine}-`));
  return folders.sort().flatMap((folder) =>
    readdirSync(join(import.meta.dirname, folder))
      .filter((name) => name.endsWith('.json'))
      .sort()
      .map((name) => recordingFile.parse(JSON.parse(readFileSync(join(import.meta.dirname, folder, name), 'utf8')))),
  );
}

/** One recording by its name; an engine's newest version wins. */
export function findRecording(engine: RecordingFile['engine'], name: string): Recording {
  const found = readRecordings(engine)
    .flatMap(({ recordings }) => recordings)
    .findLast((one) => one.name === name);
  if (!found) throw new Error(`no recording of ${engine} is named ${name}`);
  return found;
}
