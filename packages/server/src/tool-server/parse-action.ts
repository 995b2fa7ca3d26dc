// What an agent of VeRL-Tool wrote, as the action of one tool, and what the tool answered, in the frame that such an agent was trained on.

import { tryJson } from '@millrace/protocol';
import { z } from 'zod';

export const toolNames = ['bash', 'python'] as const;
type ServedTool = (typeof toolNames)[number];

export interface ToolAction {
  readonly tool: ServedTool;
  readonly code: string;
}

/** The languages of fenced blocks that each tool runs. */
const languages: Readonly<Record<ServedTool, readonly string[]>> = { bash: ['bash', 'sh', 'shell', 'terminal'], python: ['python'] };
const called = z.looseObject({
  name: z.string(),
  arguments: z.looseObject({ command: z.string().optional(), code: z.string().optional() }),
});

/** All blocks of the first tool that has one, joined: tags first, then fenced blocks, then a tool call in JSON. */
export function parseAction(text: string): ToolAction | undefined {
  for (const tool of toolNames) {
    const tagged = readBlocks(text, new RegExp(`<${tool}>`, 'g'), `</${tool}>`);
    const blocks =
      tagged.length > 0 ? tagged : readBlocks(text, new RegExp(`\`\`\`[ \\n]?(?:${languages[tool].join('|')})\\b`, 'g'), '```');
    if (blocks.length > 0) return { tool, code: blocks.map((block) => block.trim()).join('\n') };
  }
  const [call] = readBlocks(text, /<tool_call>/g, '</tool_call>');
  return call === undefined ? undefined : parseCall(call);
}

/** Each is searched once, whatever the text: a block without an end ends the search. */
function readBlocks(text: string, open: RegExp, close: string): string[] {
  const blocks: string[] = [];
  for (let found = open.exec(text); found; found = open.exec(text)) {
    const from = found.index + found[0].length;
    const to = text.indexOf(close, from);
    if (to < 0) return blocks;
    blocks.push(text.slice(from, to));
    open.lastIndex = to + close.length;
  }
  return blocks;
}

function parseCall(text: string): ToolAction | undefined {
  const { data } = called.safeParse(tryJson(text));
  if (data === undefined) return undefined;
  const { command, code } = data.arguments;
  if (data.name === 'bash' && command !== undefined) return { tool: 'bash', code: command };
  return /^i?python$/.test(data.name) && code !== undefined ? { tool: 'python', code } : undefined;
}

/** What ends an action, and what its observation stands between. The first that fits is used. */
export function frameObservation(action: string, output: string): string {
  const fenced = '\n```output\n';
  if (action.endsWith('```output')) return `\n${output}\n\`\`\`\n`;
  if (action.endsWith('</tool_call>')) return `${fenced}${output}\n\`\`\`\n`;
  if (action.endsWith('<o>')) return `\n${output}\n</o>\n`;
  if (action.endsWith('<output>')) return `\n${output}\n</output>\n`;
  if (action.includes('</bash>')) return `\n<o>\n${output}\n</o>\n`;
  if (action.includes('</python>')) return `\n<output>\n${output}\n</output>\n`;
  const fences = action.split('```').length - 1;
  if (fences === 0) return `\n${output}\n`;
  // An odd number: the agent was stopped after it had opened the block of the output.
  return fences % 2 === 0 ? `${fenced}${output}\n\`\`\`\n` : `output\n${output}\n\`\`\`\n`;
}
