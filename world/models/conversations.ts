// 32 conversations of our own, as chat templates take them. They are JSON text, because JavaScript's objects cannot hold all of it: 1.0,
// integers of any size, and keys in their order.

const bash = `{"type": "function", "function": {"name": "bash", "description": "Runs a command.", "parameters": {"type": "object", "properties": {"command": {"type": "string", "description": "The command."}}, "required": ["command"]}}}`;
const search = `{"type": "function", "function": {"name": "search", "description": "Searches <files> & \\"folders\\".", "parameters": {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 10}, "deep": {"type": "boolean", "default": false}, "ratio": {"type": ["number", "null"], "default": 0.5}, "tags": {"type": "array", "items": {"type": "string"}}, "kind": {"type": "string", "enum": ["file", "folder"]}}, "required": ["query"]}}}`;
const noParameters = `{"type": "function", "function": {"name": "now", "description": "The time.", "parameters": {"type": "object", "properties": {}}}}`;
const noDescription = `{"type": "function", "function": {"name": "submit", "description": "", "parameters": {"type": "object", "properties": {"10": {"type": "string"}, "2": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, "required": []}}}`;
const tools = `[${bash}, ${search}]`;

const call = (name: string, args: string, id = 'call00000') =>
  `{"id": "${id}", "type": "function", "function": {"name": "${name}", "arguments": ${args}}}`;
const system = (text: string) => `{"role": "system", "content": ${JSON.stringify(text)}}`;
const user = (text: string) => `{"role": "user", "content": ${JSON.stringify(text)}}`;
const assistant = (text: string, more = '') => `{"role": "assistant", "content": ${JSON.stringify(text)}${more}}`;
const calling = (text: string, ...calls: readonly string[]) => assistant(text, `, "tool_calls": [${calls.join(', ')}]`);
const tool = (text: string, id = 'call00000', name = 'bash') =>
  `{"role": "tool", "content": ${JSON.stringify(text)}, "name": "${name}", "tool_call_id": "${id}"}`;
const thinking = (text: string, thought: string, more = '') =>
  assistant(text, `, "reasoning_content": ${JSON.stringify(thought)}, "thinking": ${JSON.stringify(thought)}${more}`);
const ls = call('bash', '{"command": "ls"}');

interface ConversationShape {
  readonly messages: readonly string[];
  readonly tools?: string;
  readonly addsPrompt?: boolean;
  readonly more?: string;
}

const shapes: Readonly<Record<string, ConversationShape>> = {
  'one question': { messages: [user('What is 6 × 7?')] },
  'a system message': { messages: [system('Be brief.'), user('Hi')] },
  'three turns': { messages: [user('One'), assistant('1'), user('Two'), assistant('2'), user('Three')] },
  'three turns without a prompt': { messages: [user('One'), assistant('1'), user('Two'), assistant('2')], addsPrompt: false },
  'three turns with a system message': {
    messages: [system('Count.'), user('One'), assistant('1'), user('Two'), assistant('2'), user('3')],
  },
  'tools offered': { messages: [user('List the files.')], tools },
  'tools offered with a system message': { messages: [system('You are an agent.'), user('List the files.')], tools },
  'a tool without parameters': { messages: [user('What time is it?')], tools: `[${noParameters}]` },
  'a tool without a description, with odd names': { messages: [user('Submit.')], tools: `[${noDescription}]` },
  'a call': { messages: [user('List.'), calling('', ls)], tools, addsPrompt: false },
  'a call with text': { messages: [user('List.'), calling('I will look.', ls)], tools, addsPrompt: false },
  'a call and its result': { messages: [user('List.'), calling('', ls), tool('a.txt\nb.txt')], tools },
  'a call, its result, an answer': {
    messages: [user('List.'), calling('', ls), tool('a.txt'), assistant('One file.')],
    tools,
    addsPrompt: false,
  },
  'two rounds of calls': {
    messages: [
      system('Agent.'),
      user('Go.'),
      calling('First.', ls),
      tool('a'),
      calling('Then.', call('bash', '{"command": "cat a"}', 'call00001')),
      tool('text', 'call00001'),
    ],
    tools,
  },
  'parallel calls': {
    messages: [user('Both.'), calling('', ls, call('search', '{"query": "x", "limit": 3}', 'call00001'))],
    tools,
    addsPrompt: false,
  },
  'parallel calls and results': {
    messages: [user('Both.'), calling('', ls, call('search', '{"query": "x"}', 'call00001')), tool('a'), tool('b', 'call00001', 'search')],
    tools,
  },
  'a question after a result': { messages: [user('List.'), calling('', ls), tool('a'), assistant('Done.'), user('Again?')], tools },
  'arguments of all types': {
    messages: [
      user('Search.'),
      calling(
        '',
        call('search', '{"query": "a \\"b\\" \\\\ c", "limit": 10, "deep": true, "ratio": 1.0, "tags": ["x", null, false], "kind": null}'),
      ),
      tool('none'),
    ],
    tools,
  },
  'large and exponential numbers': {
    messages: [
      user('N.'),
      calling('', call('search', '{"query": "n", "limit": 12345678901234567890, "ratio": 1e-7, "big": 1e22, "tiny": -0.0}')),
    ],
    tools,
    addsPrompt: false,
  },
  'keys like integers': {
    messages: [user('K.'), calling('', call('submit', '{"10": "a", "2": 3, "b": {"1": 1, "0": 0}}'))],
    tools: `[${noDescription}]`,
    addsPrompt: false,
  },
  'a call without arguments': {
    messages: [user('Time.'), calling('', call('now', '{}')), tool('12:00', 'call00000', 'now')],
    tools: `[${noParameters}]`,
  },
  'nested arguments': {
    messages: [user('N.'), calling('', call('search', '{"query": {"and": [{"a": 1}, []], "or": {}}, "tags": []}'))],
    tools,
    addsPrompt: false,
  },
  reasoning: { messages: [user('Think.'), thinking('42', 'Six times seven.')], addsPrompt: false },
  'reasoning before a call': { messages: [user('List.'), thinking('', 'I should look.', `, "tool_calls": [${ls}]`), tool('a')], tools },
  'reasoning in earlier turns': {
    messages: [user('A'), thinking('1', 'first thought'), user('B'), thinking('2', 'second thought'), user('C')],
  },
  'reasoning in the content': { messages: [user('A'), assistant('<think>\nhm\n</think>\n\n1'), user('B')] },
  'thinking off': { messages: [user('Q')], more: '"enable_thinking": false, "thinking": false' },
  'other scripts': {
    messages: [system('日本語で。'), user('naïve café, Ελλάδα, 🙂🏽, e\u0301'), assistant('はい\u3000'), user('\u00a0x\u2003')],
  },
  'spaces that JavaScript and Python trim differently': {
    messages: [user('\ufeffBOM\ufeff'), assistant('\u0085NEL\u0085\u001c'), user(' \t\n plain \n')],
  },
  'empty messages': { messages: [system(''), user(''), assistant(''), user('x')] },
  'text like markup': { messages: [user('<b>&amp;</b> {{ x }} {% if %} \'quoted\' "twice" \\n \u2028')], tools },
  'results like markup': { messages: [user('Go.'), calling('', ls), tool('<tool_response>{"a": 1}</tool_response> <|im_end|>\n')], tools },
};

export const conversations: readonly { readonly name: string; readonly json: string }[] = Object.entries(shapes).map(([name, shape]) => {
  const { messages, tools: offered = 'null', addsPrompt = true, more } = shape;
  const variables = `"bos_token": "<BOS>", "eos_token": "<EOS>", "unk_token": "<UNK>", "pad_token": "<PAD>", "documents": null${more === undefined ? '' : `, ${more}`}`;
  return {
    name,
    json: `{"messages": [${messages.join(', ')}], "tools": ${offered}, "add_generation_prompt": ${addsPrompt}, ${variables}}`,
  };
});
