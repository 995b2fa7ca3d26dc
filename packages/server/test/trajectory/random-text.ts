// What the tests of conversations share: random texts of every awkward kind, a sampled turn, and the agent's one tool.

import { backendId, type ToolSpec } from '@millrace/protocol';

export const tools: ToolSpec[] = [
  { name: 'bash', description: 'Runs a command.', parameters: { type: 'object', properties: { command: { type: 'string' } } } },
];

export const alphabet = [
  ...'abc XYZ 019 .,;:!?\'"(){}[]<>|/\\_-\n\n\t\r  ',
  ' \n',
  'é',
  'e\u0301',
  '日本',
  '👩‍👩‍👧',
  '\u{1f600}',
  'ß',
  '\u2003',
  '\u0000',
  '\u200d',
  '\ufeff',
  "it's",
  '\ud800',
];

export function makeText(random: () => number, pieces: readonly string[], length = 40): string {
  return Array.from({ length: Math.floor(random() * length) }, () => pieces[Math.floor(random() * pieces.length)]).join('');
}

export function makeSampled(tokenIds: Int32Array, finishReason: 'stop' | 'length') {
  const logprobs = new Float32Array(tokenIds.length).fill(-1);
  const rest = { backend: backendId.parse('b1'), policyVersions: { first: 0, last: 0 }, retries: 0, text: '', messages: [] };
  return { tokenIds, logprobs, finishReason, ...rest };
}
