// What a tool of an MCP server answered, as text: a model here reads no images and no sound; each is named in one line.

import { z } from 'zod';
import { maxBlocks } from './mcp-limits.ts';

export const callReply = z.looseObject({
  content: z.array(z.unknown()).default([]),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().default(false),
});

const block = z.union([
  z.object({ type: z.literal('text'), text: z.string() }).transform(({ text }) => text),
  z
    .object({ type: z.enum(['image', 'audio']), data: z.string(), mimeType: z.string() })
    .transform(({ type, data, mimeType }) => `[${type} ${mimeType}, ${Math.floor((data.length * 3) / 4)} bytes, which cannot be shown]`),
  z
    .object({ type: z.literal('resource'), resource: z.object({ uri: z.string(), text: z.string() }) })
    .transform(({ resource }) => `[resource ${resource.uri}]\n${resource.text}`),
  z
    .object({ type: z.literal('resource'), resource: z.object({ uri: z.string(), blob: z.string() }) })
    .transform(({ resource }) => `[resource ${resource.uri}, which cannot be shown]`),
  z
    .object({ type: z.literal('resource_link'), uri: z.string(), name: z.string().optional() })
    .transform(({ uri, name }) => `[link ${uri}${name === undefined ? '' : ` ${name}`}]`),
]);

export function renderCallReply({ content, structuredContent, isError }: z.infer<typeof callReply>): string {
  const shown = content.slice(0, maxBlocks).map((one) => block.safeParse(one).data ?? '[content of an unknown kind]');
  const left = content.length - shown.length;
  if (left > 0) shown.push(`[${left} more parts left out]`);
  if (shown.length === 0 && structuredContent !== undefined) shown.push(JSON.stringify(structuredContent));
  const text = shown.join('\n').replace(/\n$/, '');
  if (isError) return text === '' ? '[error]' : `[error]\n${text}`;
  return text === '' ? '[no output]' : text;
}
