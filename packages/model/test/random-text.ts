// Shared by the tests of conversations: random texts of every awkward kind, a sampled turn, a random turn with tool results, and a tool.

import { backendId, type Message, type ToolSpec } from '@millrace/protocol';
import type { LocalConversation } from '../src/conversation.ts';
import type { Ledger } from '../src/ledger/ledger.ts';

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

/** Appends a turn with random text, cut or not, to the ledger, and returns random tool results for the caller to append. */
export function appendRandomTurn(
  ledger: Ledger,
  { tokenizer, endOfTurn }: Pick<LocalConversation, 'tokenizer' | 'endOfTurn'>,
  { random, pieces }: { readonly random: () => number; readonly pieces: readonly string[] },
): Message[] {
  const ids = tokenizer.encode(makeText(random, pieces));
  const isCut = random() < 0.3;
  ledger.appendSampled(makeSampled(isCut ? ids : Int32Array.from([...ids, endOfTurn.id]), isCut ? 'length' : 'stop'));
  if (isCut) ledger.appendInserted(endOfTurn);
  return Array.from({ length: 1 + Math.floor(random() * 3) }, () => ({ role: 'tool', content: makeText(random, pieces) }));
}
