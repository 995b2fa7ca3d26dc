// Whether a server's tokenizer is the service's: both encode the same texts, and the ids are compared. A server with another
// vocabulary would continue ids that mean something else to it, and nothing else would show it.

import type { Pace } from '@millrace/base/pace';
import type { BackendProbe } from '@millrace/engines';
import type { Conversation } from '@millrace/model';
import { type Dialect, tryJson } from '@millrace/protocol';
import { z } from 'zod';
import type { ServerAnswer } from '../identity/ask-server.ts';

/** Texts with the ids that the service's tokenizer gives them. */
export const tokenizerSample = z.array(z.object({ text: z.string(), tokenIds: z.array(z.int().min(0)) }));
export type TokenizerSample = z.infer<typeof tokenizerSample>;

/** In NFC, because llama.cpp does not compose characters. */
const texts = [
  'naïve café — “quoted” 東京 🙂 Ελλάδα',
  'In 2024, 3.14 × 1,000 = 3140; 12345678901',
  'for (let i = 0; i < n; i++) {\n\tx_1 += "a\\tb";\n}\r\n\n\n    indented',
];

/** The texts above, and an opening with the control tokens of the chat template. */
export async function sampleTokenizer({ tokenizer, openingSteps }: Conversation, pace: Pace): Promise<TokenizerSample> {
  const opening = await pace.run(openingSteps([{ role: 'user', content: 'What is 6 × 7?' }], []));
  const samples = [{ text: opening.text, tokenIds: [...opening.tokenIds] }];
  for (const text of texts) samples.push({ text, tokenIds: [...(await pace.run(tokenizer.encodeSteps([{ text, trusted: true }])))] });
  return samples;
}

type PostToServer = (path: string, body: Readonly<Record<string, unknown>>) => Promise<ServerAnswer>;

const reply = z.looseObject({ tokens: z.array(z.int()) });

export async function checkTokenizer(
  sample: TokenizerSample | undefined,
  { dialect, model }: { readonly dialect: Dialect; readonly model?: string | undefined },
  post: PostToServer,
): Promise<Pick<BackendProbe, 'tokenizer' | 'tokenizerReason'>> {
  if (!sample) return { tokenizer: 'unchecked', tokenizerReason: 'no worker of this server has reported its tokenizer yet' };
  for (const { text, tokenIds } of sample) {
    const body = dialect === 'llamacpp' ? { content: text, add_special: false, parse_special: true } : toPrompt(text, model);
    const answer = await post('/tokenize', body);
    const found = parseTokens(answer);
    if (!found) return { tokenizer: 'unchecked', tokenizerReason: `POST /tokenize answered ${answer.status}` };
    const reason = describeDifference(text, tokenIds, found);
    if (reason !== undefined) return { tokenizer: 'different', tokenizerReason: reason };
  }
  return { tokenizer: 'same' };
}

function toPrompt(prompt: string, model: string | undefined): Record<string, unknown> {
  return { prompt, add_special_tokens: false, ...(model === undefined ? {} : { model }) };
}

function parseTokens({ status, text }: ServerAnswer): readonly number[] | undefined {
  // What is not JSON comes from another route under this name.
  return status === 200 ? reply.safeParse(tryJson(text)).data?.tokens : undefined;
}

/** How many ids are shown from the first that differs. */
const shownIds = 8;

function describeDifference(text: string, ours: readonly number[], theirs: readonly number[]): string | undefined {
  const length = Math.max(ours.length, theirs.length);
  const at = Array.from({ length }, (_, i) => i).find((i) => ours[i] !== theirs[i]);
  if (at === undefined) return undefined;
  const show = (ids: readonly number[]) => `[${ids.slice(at, at + shownIds).join(', ')}${ids.length > at + shownIds ? ', …' : ''}]`;
  const where = at === 0 ? '' : `, from token ${at} on,`;
  return (
    `its tokenizer is not the service's: it encodes ${JSON.stringify(text)}${where} as ${show(theirs)}, and the service as ${show(ours)}; ` +
    'set model.tokenizer to the files of the model that it serves'
  );
}
