// When two messages are the same although clients write them differently: assistant turns by the ids of their calls, then by their
// text and calls. What clients lose or rewrite on the way (reasoning, outer whitespace, the order of keys) does not count.

import type { Message, ToolSpec } from '@millrace/protocol';

export interface MessageKey {
  readonly role: Message['role'];
  readonly form: string;
  /** Of the calls of an assistant turn, as the client has them. */
  readonly callIds: readonly string[];
}

export function toKey({ role, content, tool_calls = [], tool_call_id }: Message): MessageKey {
  if (role !== 'assistant') return { role, form: JSON.stringify([role, content, tool_call_id ?? '']), callIds: [] };
  const calls = tool_calls.map(({ name, arguments: args }) => [name, sortKeys(args)]);
  return { role, form: JSON.stringify([content.trim(), calls]), callIds: tool_calls.map(({ id }) => id).filter((id) => id !== '') };
}

export function isSame(a: MessageKey, b: MessageKey): boolean {
  if (a.role !== b.role) return false;
  if (a.callIds.length > 0 && a.callIds.length === b.callIds.length && a.callIds.every((id, at) => id === b.callIds[at])) return true;
  return a.form === b.form;
}

export function toToolsForm(tools: readonly ToolSpec[]): string {
  return JSON.stringify(sortKeys(tools.map(({ name, description, parameters }) => ({ name, description, parameters }))));
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      .map(([key, item]) => [key, sortKeys(item)]),
  );
}
