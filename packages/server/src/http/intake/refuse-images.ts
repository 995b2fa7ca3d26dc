// Refuses tasks whose chat messages have images, video or audio: the ledger holds token ids, and these have none. The check finds
// messages anywhere in a task, since each scenario names its fields itself.

import { toFault, toFaultError } from '../request/check.ts';

const mediaTypes = new Set(['image', 'image_url', 'input_image', 'video', 'video_url', 'audio', 'audio_url', 'input_audio']);

/** Throws `task-invalid` with the path of the first such part. */
export function refuseImages(task: unknown, at: readonly PropertyKey[]): void {
  const found = findMedia(task);
  if (!found) return;
  const { path, type } = found;
  const message = `messages with content of type ${JSON.stringify(type)} are not supported; send text only`;
  throw toFaultError([toFault([...at, ...path], message)], { code: 'task-invalid' });
}

interface Found {
  readonly path: readonly PropertyKey[];
  readonly type: string;
}

/** A loop rather than a recursion: a task may be nested more deeply than the stack. */
function findMedia(task: unknown): Found | undefined {
  const open: { readonly value: unknown; readonly path: readonly PropertyKey[] }[] = [{ value: task, path: [] }];
  for (let next = open.pop(); next; next = open.pop()) {
    const { value, path } = next;
    if (typeof value !== 'object' || value === null) continue;
    const found = findInMessage(value, path);
    if (found) return found;
    const entries: [PropertyKey, unknown][] = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
    for (const [key, inner] of entries) if (typeof inner === 'object' && inner !== null) open.push({ value: inner, path: [...path, key] });
  }
  return undefined;
}

function findInMessage(value: object, path: readonly PropertyKey[]): Found | undefined {
  if (!('role' in value && 'content' in value && Array.isArray(value.content))) return undefined;
  for (const [index, part] of value.content.entries()) {
    const type: unknown = typeof part === 'object' && part !== null && 'type' in part ? part.type : undefined;
    if (typeof type === 'string' && mediaTypes.has(type)) return { path: [...path, 'content', index], type };
  }
  return undefined;
}
