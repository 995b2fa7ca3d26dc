// Turns in the format of each family, and what is read of them.

import type { ToolSpec } from '@millrace/protocol';
import type { ToolFormat } from '../../src/tool-calls/tool-calls.ts';

export const tools: ToolSpec[] = [
  {
    name: 'bash',
    description: 'Runs a command.',
    parameters: {
      type: 'object',
      properties: {
        command: { type: 'string' },
        limit: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
        quiet: { type: 'boolean' },
        tags: { type: 'array' },
        either: { type: ['string', 'integer'] },
      },
    },
  },
];

type Row = readonly [
  format: ToolFormat,
  text: string,
  calls: readonly (readonly [string, Record<string, unknown>])[],
  rest?: { content?: string; reasoning?: string; malformed?: RegExp },
];

const ls: readonly [string, Record<string, unknown>] = ['bash', { command: 'ls' }];
export const rows: readonly Row[] = [
  ['functionary-v3.2', 'bash\n{"command": "ls"}>>>bash\n{"command": "ls"}', [ls, ls]],
  ['functionary-v3.2', '>>>all\nLook.>>>bash\n{"command": "ls"}', [ls], { content: 'Look.' }],
  ['functionary-v3.2', 'all\nall good', [], { content: 'all good' }],
  ['functionary-v3.2', 'all good', [], { content: 'all good' }],
  ['functionary-v3.2', 'bash\n{"command": "l', [], { malformed: /not valid JSON/ }],
  [
    'glm',
    'Look.\n<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n<arg_key>limit</arg_key>\n<arg_value>3</arg_value>\n</tool_call>',
    [['bash', { command: 'ls', limit: 3 }]],
    { content: 'Look.' },
  ],
  ['glm', 'hm</think><tool_call>bash<arg_key>command</arg_key><arg_value>ls</arg_value></tool_call>', [ls], { reasoning: 'hm' }],
  ['glm', '<tool_call>bash<arg_key>command</arg_key><arg_value>l', [], { malformed: /not closed/ }],
  [
    'deepseek-v3',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n{"command": "ls"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    [ls],
  ],
  [
    'deepseek-v3.1',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>{"command": "ls"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    [ls, ['bash', {}]],
  ],
  [
    'deepseek-v3.2',
    '<｜DSML｜function_calls>\n<｜DSML｜invoke name="bash">\n<｜DSML｜parameter name="command" string="true">3</｜DSML｜parameter>\n<｜DSML｜parameter name="limit" string="false">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    [['bash', { command: '3', limit: 3 }]],
  ],
  [
    'kimi-k2',
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{"command": "ls"}<|tool_call_end|><|tool_calls_section_end|>',
    [ls],
  ],
  [
    'kimi-k2',
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{"command"',
    [],
    { malformed: /not valid JSON/ },
  ],
  [
    'minimax-m2',
    '<minimax:tool_call>\n<invoke name="bash">\n<parameter name="command">ls</parameter>\n<parameter name="tags">["a"]</parameter>\n</invoke>\n</minimax:tool_call>',
    [['bash', { command: 'ls', tags: ['a'] }]],
  ],
  [
    'harmony',
    '<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{"command": "ls"}',
    [ls],
    { reasoning: 'hm' },
  ],
  [
    'harmony',
    '<|channel|>analysis<|message|>to=functions.bash is no call here<|end|><|start|>assistant<|channel|>final<|message|>42',
    [],
    { reasoning: 'to=functions.bash is no call here', content: '42' },
  ],
  ['harmony', ' to=functions.bash<|channel|>commentary json<|message|>{"command": ', [], { malformed: /not valid JSON/ }],
  [
    'gemma4',
    '<|tool_call>call:bash{command:<|"|>ls {a}<|"|>,limit:3,tags:[<|"|>a<|"|>],quiet:true}<tool_call|>',
    [['bash', { command: 'ls {a}', limit: 3, tags: ['a'], quiet: true }]],
  ],
  ['gemma4', '<|tool_call>call:bash{command:<|"|>ls', [], { malformed: /not closed/ }],
  ['functiongemma', '<start_function_call>call:bash{command:<escape>ls<escape>}<end_function_call>', [ls]],
  [
    'pythonic',
    '[bash(command="ls"), bash(command=\'a "b"\\n\', limit=None, tags=[1, {"k": True}])]',
    [ls, ['bash', { command: 'a "b"\n', limit: null, tags: [1, { k: true }] }]],
  ],
  ['pythonic', 'The list [bash(x)] is no call.', [], { content: 'The list [bash(x)] is no call.' }],
  ['pythonic', 'I look. [bash(command="ls")]', [ls], { content: 'I look.' }],
  ['pythonic', '[bash(command="l', [], { malformed: /not closed/ }],
  ['lfm2', '<|tool_call_start|>[bash(command="ls")]<|tool_call_end|>Done.', [ls], { content: 'Done.' }],
  [
    'seed-oss',
    '<seed:think>hm</seed:think><seed:tool_call>\n<function=bash>\n<parameter=command>ls</parameter>\n</function>\n</seed:tool_call>',
    [ls],
    { reasoning: 'hm' },
  ],
  ['nemotron', '<TOOLCALL>[{"name": "bash", "arguments": {"command": "ls"}}]</TOOLCALL>', [ls]],
  ['granite', '<|tool_call|>[{"name": "bash", "arguments": {"command": "ls"}}]', [ls]],
  ['phi4-mini', 'functools[{"name": "bash", "arguments": {"command": "ls"}}]', [ls]],
  [
    'cohere',
    '<|START_THINKING|>hm<|END_THINKING|><|START_ACTION|>[\n{"tool_call_id": "0", "tool_name": "bash", "parameters": {"command": "ls"}}\n]<|END_ACTION|>',
    [ls],
    { reasoning: 'hm' },
  ],
  ['apertus', '<|tools_prefix|>[{"bash": {"command": "ls"}}]<|tools_suffix|>', [ls]],
  [
    'tool-calls-list',
    '<tool_calls>[{"name": "bash", "arguments": {"command": "</tool_calls>"}}]</tool_calls>',
    [['bash', { command: '</tool_calls>' }]],
  ],
  ['internlm2', '<|action_start|><|plugin|>\n{"name": "bash", "parameters": {"command": "ls"}}<|action_end|>', [ls]],
  [
    'qwen3-coder',
    '<tool_call>\n<function=bash>\n<parameter=limit>\nnull\n</parameter>\n<parameter=either>\n7\n</parameter>\n</function>\n</tool_call>',
    [['bash', { limit: null, either: 7 }]],
  ],
  [
    'qwen3-coder',
    '<function=bash>\n<parameter=command>\nls\n<parameter=limit>\n3\n</parameter>\n</function>',
    [['bash', { command: 'ls', limit: 3 }]],
  ],
  ['qwen3-coder', '<function=bash>\n<parameter=command>\nls\n</function>\n</tool_call>', [ls]],
  [
    'qwen3-coder',
    '<function=bash>\n<parameter=command>\ngrep "\n<parameter=x>" f\n</parameter>\n</function>',
    [['bash', { command: 'grep "\n<parameter=x>" f' }]],
  ],
  ['llama3-json', 'I will look: {"name": "bash", "parameters": {"command": "ls"}}', [ls], { content: 'I will look:' }],
  ['llama3-json', '```json\n[{"name": "bash", "arguments": {"command": "ls"}}]\n```', [ls]],
  ['llama3-json', '{"name": "Alice", "age": 30}', [], { content: '{"name": "Alice", "age": 30}' }],
  ['llama3-json', '{"name": "bash"}', [['bash', {}]]],
  ['hermes', '<tool_call>{"name": "bash", "arguments": {"command": "ls", "quiet": "true"}}', [['bash', { command: 'ls', quiet: true }]]],
  ['longcat', 'So: <longcat_tool_call>{"name": "bash", "arguments": {"command": "ls"}}</longcat_tool_call>', [ls], { content: 'So:' }],
  [
    'ernie45',
    'hm\n</think>\n\n<response>\nSo.\n</response>\n\n<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>\n',
    [ls],
    { content: 'So.', reasoning: 'hm' },
  ],
  [
    'plamo3',
    '<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>bash<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{"command": "ls"}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>',
    [ls],
  ],
  [
    'inkling',
    '<|content_thinking|>hm<|end_message|><|message_model|><|content_text|>So.<|end_message|><|message_model|><|content_invoke_tool_json|>{"name": "bash", "args": {"command": "ls"}}<|end_message|>',
    [ls],
    { content: 'So.', reasoning: 'hm' },
  ],
  ['inkling', '<|content_invoke_tool_json|>{"name": "bash", "args": {"comm', [], { malformed: /not valid JSON/ }],
  [
    'k2-horizon',
    '<ifm|tool_calls><ifm|tool_call>bash<ifm|arg_key>limit</ifm|arg_key><ifm|arg_type>integer</ifm|arg_type><ifm|arg_value>3</ifm|arg_value></ifm|tool_call></ifm|tool_calls>',
    [['bash', { limit: 3 }]],
  ],
  [
    'k2-horizon',
    'hm</ifm|think_fast><ifm|tool_calls><ifm|tool_call>bash<ifm|arg_key>command</ifm|arg_key><ifm|arg_value>ls</ifm|arg_value></ifm|tool_call></ifm|tool_calls>',
    [ls],
    { reasoning: 'hm' },
  ],
  ['k2-horizon', '<ifm|tool_calls><ifm|tool_call>{"name": "bash", "arguments": {"command": "ls"}}</ifm|tool_call></ifm|tool_calls>', [ls]],
  [
    'hunyuan-v3',
    '<tool_calls><tool_call>bash<tool_sep>\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call></tool_calls>',
    [ls],
  ],
  [
    'hunyuan-v4',
    'hm</think:a1><tool_calls:a1><tool_call:a1>bash<arg_key:a1>command</arg_key:a1><arg_value:a1>ls</arg_value:a1></tool_call:a1></tool_calls:a1>',
    [ls],
    { reasoning: 'hm' },
  ],
  ['dots', '<dots_function_call>\n<invoke name="bash">\n<parameter name="command">ls</parameter>\n</invoke>\n</dots_function_call>', [ls]],
  ['dots', '<dots_function_call>{"name": "bash", "arguments": {"command": "ls"}}</dots_function_call>', [ls]],
  [
    'step3',
    '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="bash"><steptml:parameter name="command">ls</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>',
    [ls],
  ],
  [
    'deepseek-v4.1',
    '<｜DSML｜ calls>\n<｜DSML｜ invoke name="bash">\n<｜DSML｜ parameter name="command" string="true">ls</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>',
    [ls],
  ],
  [
    'muse',
    ' to=self<|message|>hm <|message|><eom><|eom|><|start|>assistant to=bash<|message|><atem:function_calls>\n<atem:invoke name="bash">\n<atem:parameter name="command">ls</atem:parameter>\n</atem:invoke>\n</atem:function_calls>',
    [ls],
    { reasoning: 'hm <|message|><eom>' },
  ],
  ['glm', 'So: <tool_call>', [], { content: 'So: <tool_call>', malformed: /no readable call/ }],
  ['gemma4', '<|tool_call>call:bash{command:<|"|>ls<|"|>}', [ls]],
  ['harmony', '<|channel|>commentary to=functions.', [], { malformed: /no arguments/ }],
  [
    'harmony',
    '<|channel|>commentary to=functions.bash<|message|>{"command": "echo <|call|>"}<|call|>',
    [['bash', { command: 'echo <|call|>' }]],
  ],
  ['seed-oss', '<seed:tool_call><function=bash><parameter=command>ls</parameter></seed:tool_call>', [ls]],
];
