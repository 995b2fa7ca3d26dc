// Conversations that go on turn by turn: what the policy says, and what follows it. Texts are all different, so that it shows which of them
// a template writes.

import type { Message, ToolSpec } from '@millrace/protocol';

export interface ScriptTurn {
  readonly turn: Message;
  /** What follows the turn. */
  readonly next: readonly Message[];
}

export interface ConversationScript {
  readonly name: string;
  readonly opening: readonly Message[];
  readonly tools: readonly ToolSpec[];
  readonly turns: readonly ScriptTurn[];
}

const tools: readonly ToolSpec[] = [
  {
    name: 'bash',
    description: 'Runs a command.',
    parameters: { type: 'object', properties: { command: { type: 'string', description: 'The command.' } }, required: ['command'] },
  },
  {
    name: 'search',
    description: 'Searches.',
    parameters: { type: 'object', properties: { query: { type: 'string', description: 'The words.' } }, required: ['query'] },
  },
];

/** How the model writes the id of a call: its number, counted over the conversation, and its place in the turn. */
export type WriteId = (name: string, index: number, at: number) => string;

const system: Message = { role: 'system', content: 'The rules of this place.' };
const user = (number: number): Message => ({ role: 'user', content: `Question ${number} of the user?` });
const text = (number: number, more: Partial<Message> = {}): Message => ({
  role: 'assistant',
  content: `Answer ${number} in words.`,
  ...more,
});
const thinks = (number: number) => ({ reasoning: `Thought ${number} about it.` });

/** Calls and results with the ids of a model. */
interface CallMakers {
  readonly calls: (first: number, ...names: string[]) => Pick<Message, 'tool_calls'>;
  readonly result: (index: number, name?: string, at?: number) => Message;
}

export function makeScripts(writeId: WriteId): readonly ConversationScript[] {
  const makers = toMakers(writeId);
  return [...talkScripts, ...makeCallScripts(makers), ...makeThoughtScripts(makers)];
}

const silent = (more: Partial<Message>): Message => ({ role: 'assistant', content: '', ...more });
const bare: Message = { role: 'tool', content: 'That call could not be read.' };
const talk: readonly ScriptTurn[] = [1, 2, 3].map((number) => ({ turn: text(number), next: [user(number + 1)] }));
const talkScripts: readonly ConversationScript[] = [
  { name: 'users', opening: [user(1)], tools: [], turns: talk },
  { name: 'users after a system message', opening: [system, user(1)], tools: [], turns: talk },
  { name: 'users, with tools', opening: [user(1)], tools, turns: talk },
];

function toMakers(writeId: WriteId): CallMakers {
  const call = (index: number, name: string, at: number) => ({
    id: writeId(name, index, at),
    name,
    arguments: name === 'bash' ? { command: `ls folder${index}` } : { query: `words${index}` },
  });
  const result = (index: number, name = 'bash', at = 0): Message => ({
    role: 'tool',
    content: `Output ${index} of the tool`,
    name,
    tool_call_id: writeId(name, index, at),
  });
  const calls = (first: number, ...names: string[]): Pick<Message, 'tool_calls'> => ({
    tool_calls: names.map((name, at) => call(first + at, name, at)),
  });
  return { calls, result };
}

function makeCallScripts({ calls, result }: CallMakers): ConversationScript[] {
  return [
    {
      name: 'calls, then users',
      opening: [system, user(1)],
      tools,
      turns: [
        { turn: silent(calls(0, 'bash')), next: [result(0)] },
        { turn: silent(calls(1, 'search')), next: [result(1, 'search')] },
        { turn: text(1), next: [user(2)] },
        { turn: silent(calls(2, 'bash')), next: [result(2)] },
        { turn: text(2), next: [user(3)] },
      ],
    },
    {
      name: 'text before calls',
      opening: [user(1)],
      tools,
      turns: [
        { turn: text(1, calls(0, 'bash')), next: [result(0)] },
        { turn: text(2, calls(1, 'bash')), next: [result(1)] },
        { turn: text(3), next: [user(2)] },
      ],
    },
    {
      name: 'parallel calls',
      opening: [user(1)],
      tools,
      turns: [
        { turn: silent(calls(0, 'bash', 'search')), next: [result(0), result(1, 'search', 1)] },
        { turn: silent(calls(2, 'search', 'bash')), next: [result(2, 'search'), result(3, 'bash', 1)] },
        { turn: text(1), next: [user(2)] },
      ],
    },
    {
      name: 'a user after results',
      opening: [user(1)],
      tools,
      turns: [
        { turn: silent(calls(0, 'bash')), next: [result(0), user(2)] },
        { turn: text(1), next: [user(3)] },
      ],
    },
    {
      name: 'a call that could not be read',
      opening: [user(1)],
      tools,
      turns: [
        { turn: text(1), next: [bare] },
        { turn: silent(calls(0, 'bash')), next: [result(0)] },
        { turn: text(2), next: [user(2)] },
      ],
    },
  ];
}

function makeThoughtScripts({ calls, result }: CallMakers): ConversationScript[] {
  return [
    {
      name: 'reasoning before text',
      opening: [user(1)],
      tools: [],
      turns: [1, 2, 3].map((number) => ({ turn: text(number, thinks(number)), next: [user(number + 1)] })),
    },
    {
      name: 'reasoning now and then',
      opening: [system, user(1)],
      tools: [],
      turns: [1, 2, 3, 4].map((number) => ({ turn: text(number, number % 2 === 0 ? thinks(number) : {}), next: [user(number + 1)] })),
    },
    {
      name: 'reasoning before calls, then users',
      opening: [user(1)],
      tools,
      turns: [
        { turn: silent({ ...thinks(1), ...calls(0, 'bash') }), next: [result(0)] },
        { turn: silent({ ...thinks(2), ...calls(1, 'search') }), next: [result(1, 'search')] },
        { turn: text(1, thinks(3)), next: [user(2)] },
        { turn: silent({ ...thinks(4), ...calls(2, 'bash') }), next: [result(2)] },
        { turn: text(2, thinks(5)), next: [user(3)] },
        { turn: text(3), next: [user(4)] },
      ],
    },
    {
      name: 'reasoning before the first call only',
      opening: [user(1)],
      tools,
      turns: [
        { turn: silent({ ...thinks(1), ...calls(0, 'bash') }), next: [result(0)] },
        { turn: silent(calls(1, 'bash')), next: [result(1)] },
        { turn: text(1), next: [user(2)] },
      ],
    },
  ];
}
