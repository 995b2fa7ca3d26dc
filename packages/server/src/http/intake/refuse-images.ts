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

/** A value inside the task, with the way to it. */
interface Inner {
  readonly value: object;
  readonly key?: PropertyKey;
  readonly parent?: Inner;
}

/** A loop rather than a recursion: a task may be nested more deeply than the stack. */
function findMedia(task: unknown): Found | undefined {
  const open: Inner[] = typeof task === 'object' && task !== null ? [{ value: task }] : [];
  for (let next = open.pop(); next; next = open.pop()) {
    const found = findInMessage(next.value);
    if (found) return { ...found, path: [...pathOf(next), ...found.path] };
    for (const key of Object.keys(next.value)) {
      const value: unknown = Reflect.get(next.value, key);
      if (typeof value !== 'object' || value === null) continue;
      open.push({ value, key: Array.isArray(next.value) ? Number(key) : key, parent: next });
    }
  }
  return undefined;
}

function pathOf(inner: Inner): PropertyKey[] {
  const path: PropertyKey[] = [];
  for (let at: Inner | undefined = inner; at?.key !== undefined; at = at.parent) path.unshift(at.key);
  return path;
}

function findInMessage(value: object): Found | undefined {
  if (!('role' in value && 'content' in value && Array.isArray(value.content))) return undefined;
  for (const [index, part] of value.content.entries()) {
    const type: unknown = typeof part === 'object' && part !== null && 'type' in part ? part.type : undefined;
    if (typeof type === 'string' && mediaTypes.has(type)) return { path: ['content', index], type };
  }
  return undefined;
}
