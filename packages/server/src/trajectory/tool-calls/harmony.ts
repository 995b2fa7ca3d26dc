// The harmony format of gpt-oss: a turn is several messages with a channel each. Analysis is reasoning, a message to=functions.name is a
// call, the rest is content.

import { addJsonCall, emptyFindings, excerpt, type Findings, parseJson, type ToolCallParser, toParsedTurn } from './tool-calls.ts';

const messageEnd = /<\|(?:end|call|return)\|>/;

export const harmonyParser: ToolCallParser = {
  name: 'harmony',
  ends: ['<|return|>', '<|call|>'],
  parse(text) {
    const found = emptyFindings();
    for (const part of text.split('<|start|>')) readMessage(part, found);
    return toParsedTurn(found);
  },
};

function readMessage(part: string, found: Findings): void {
  const start = part.indexOf('<|message|>');
  if (start < 0) {
    if (!part.includes('<|channel|>') && !/^assistant\b/.test(part)) found.content.push(part.replace(messageEnd, ''));
    return;
  }
  const head = part.slice(0, start);
  const rest = part.slice(start + '<|message|>'.length);
  const end = rest.search(messageEnd);
  const body = end < 0 ? rest : rest.slice(0, end);
  const recipient = /to=(?:functions\.)?([^\s<]{1,200})/.exec(head)?.[1];
  if (recipient !== undefined && recipient !== 'user') readCall(recipient, body, found);
  else if (/<\|channel\|>\s*analysis/.test(head)) found.thoughts.push(body);
  else found.content.push(body);
}

function readCall(name: string, body: string, found: Findings): void {
  const value = parseJson(body);
  if (value.ok) addJsonCall(found, { name, arguments: value.json });
  else found.malformed.push(`The arguments of the call to ${excerpt(name)} are not valid JSON: ${excerpt(body)}`);
}
