// Reads a turn of any length without blocking the event loop: a long one in a thread with a deadline. A turn that uses it up has no calls.

import type { ThreadPool } from '@millrace/base/threads/thread-pool';
import type { ToolSpec } from '@millrace/protocol';
import { rememberExact, toValue, type Value } from './jinja/values/values.ts';
import type { ParsedTurn, ToolCallParser, ToolFormat } from './tool-calls/tool-calls.ts';
import { findToolParser } from './tool-calls/tool-parsers.ts';

/** In characters; any text of this length is read within a few milliseconds. */
const longTurn = 8 << 10;
const readCpuMs = 2000;

interface TurnText {
  readonly text: string;
  readonly tools: readonly ToolSpec[];
  readonly signal?: AbortSignal | undefined;
}

export async function readTurn(pool: ThreadPool, parser: ToolCallParser, { text, tools, signal }: TurnText): Promise<ParsedTurn> {
  if (text.length < longTurn) return parser.parse(text, tools);
  const specs = tools.map(({ name, description, parameters }) => ({ name, description, parameters }));
  const outcome = await pool.call(parseLongTurn, [parser.name, text, specs] as const, { cpuMs: readCpuMs, signal });
  if (outcome.kind === 'exhausted') {
    const why = `The turn of ${text.length} characters takes too long to read (${outcome.by}), so nothing in it was run.`;
    return { content: text, calls: [], malformed: [why] };
  }
  const { turn, exact } = outcome.value;
  for (const [index, call] of turn.calls.entries()) rememberExact(call.arguments, exact[index] ?? null);
  return turn;
}

interface ReadTurn {
  readonly turn: ParsedTurn;
  /** The arguments of each call as a template renders them: what an object remembers is lost between threads. */
  readonly exact: readonly Value[];
}

/** Runs in the thread. */
export function parseLongTurn(format: ToolFormat, text: string, tools: readonly ToolSpec[]): ReadTurn {
  const turn = findToolParser(format).parse(text, tools);
  return { turn, exact: turn.calls.map((call) => toValue(call.arguments)) };
}
