// The ids of calls, which the policy may have written: the template sees placeholders of the same length, so that no id can forge a control
// token, and one run of the template serves all ids of a length.

import type { Message } from '@millrace/protocol';
import type { Skeleton } from './template-skeleton.ts';

/** No template contains these. */
const firstMark = 0xe100;
const lastMark = 0xf8fe;
const filler = '\u{e0ff}';
const placeholder = /([\ue100-\uf8fe]\ue0ff*)/u;

/** The distinct ids of the calls that these messages answer, in their order. */
export function idsOf(messages: readonly Message[]): readonly string[] {
  const ids = messages.flatMap(({ role, tool_call_id }) => (role === 'tool' && tool_call_id ? [tool_call_id] : []));
  return [...new Set(ids)].slice(0, lastMark - firstMark + 1);
}

/** The messages with a placeholder for each of these ids, in calls and in results. */
export function guardIds(messages: readonly Message[], ids: readonly string[]): readonly Message[] {
  if (ids.length === 0) return messages;
  const guards = new Map(ids.map((id, index) => [id, toGuard(id, index)]));
  const guard = (id: string) => guards.get(id) ?? id;
  return messages.map(({ tool_calls, tool_call_id, ...rest }) => ({
    ...rest,
    ...(tool_calls ? { tool_calls: tool_calls.map((call) => ({ ...call, id: guard(call.id) })) } : {}),
    ...(tool_call_id === undefined ? {} : { tool_call_id: guard(tool_call_id) }),
  }));
}

function toGuard(id: string, index: number): string {
  return String.fromCharCode(firstMark + index) + filler.repeat([...id].length - 1);
}

/** The skeleton with a piece for each id; undefined if the template writes another text than the id. */
export function splitIds(skeleton: Skeleton, ids: readonly string[]): Skeleton | undefined {
  const guards = ids.map(toGuard);
  const pieces = skeleton.flatMap((piece): Skeleton => {
    if (!('text' in piece)) return [piece];
    return piece.text.split(placeholder).map((text, index) => {
      const id = index % 2 === 0 ? undefined : text.charCodeAt(0) - firstMark;
      return id === undefined || id >= ids.length ? { text } : { id, isWhole: guards[id] === text };
    });
  });
  if (pieces.some((piece) => ('isWhole' in piece && !piece.isWhole) || ('text' in piece && piece.text.includes(filler)))) return undefined;
  return pieces;
}
