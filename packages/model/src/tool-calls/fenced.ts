// Fenced blocks as tool calls, for models that were not trained on tools: each ```bash block is a call of `bash` with that command.

import { takeReasoning, thinkTags } from './reasoning.ts';
import { emptyFindings, excerpt, type ToolCallParser, toCallId, toParsedTurn } from './tool-calls.ts';

export const fencedParser: ToolCallParser = {
  name: 'fenced',
  parse(text) {
    const found = emptyFindings();
    const rest = takeReasoning(text, thinkTags, { found, callOpen: '```' });
    let block: { readonly fence: string; readonly isCall: boolean; readonly lines: string[] } | undefined;
    for (const line of rest.split('\n')) {
      const [, fence, info = ''] = /^ {0,3}(`{3,})([^`]*)$/.exec(line) ?? [];
      if (!block) {
        if (fence) block = { fence, isCall: ['bash', 'sh', 'shell'].includes(info.trim()), lines: [] };
        if (!block?.isCall) found.content.push(line, '\n');
      } else if (fence && fence.length >= block.fence.length && info.trim() === '') {
        if (block.isCall)
          found.calls.push({ id: toCallId(found.calls.length), name: 'bash', arguments: { command: block.lines.join('\n') } });
        else found.content.push(line, '\n');
        block = undefined;
      } else if (block.isCall) block.lines.push(line);
      else found.content.push(line, '\n');
    }
    if (block?.isCall)
      found.malformed.push(`A block was not closed with ${block.fence}, so it was not run: ${excerpt(block.lines.join('\n'))}`);
    return toParsedTurn(found);
  },
};
