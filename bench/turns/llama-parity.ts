// Compares our token ids with those of llama.cpp's tokenizer, an independent implementation in C++: the same texts, sent to a real
// llama-server with Qwen3's vocabulary.

import { openTokenizer } from '@millrace/model';
import { findLlamaServer, openLlamaServer, qwen3Folder } from '@millrace/testkit';
import { z } from 'zod';

/** One claim, or none if llama-server is not installed. Texts are composed (NFC) first, which the model requires and llama.cpp does not do. */
export async function compareWithLlama(corpus: readonly string[]): Promise<{ claim: string; kept: boolean }[]> {
  if (findLlamaServer() === undefined) return [];
  await using server = await openLlamaServer({ slots: 1 });
  const tokenizer = await openTokenizer(qwen3Folder());
  const texts = corpus.map((text) => text.normalize('NFC')).filter((text) => text.isWellFormed());
  let different = 0;
  let tokens = 0;
  for (const content of texts) {
    const body = JSON.stringify({ content, add_special: false, parse_special: true });
    const reply = await fetch(`${server.url}/tokenize`, { method: 'POST', body });
    const theirs = z.object({ tokens: z.array(z.int()) }).parse(await reply.json()).tokens;
    const ours = tokenizer.encodePlain(content);
    tokens += ours.length;
    if (ours.join() !== theirs.join()) different += 1;
  }
  const claim = `qwen3: ${different} of ${texts.length} composed texts (${tokens} tokens) differ from llama.cpp`;
  return [{ claim, kept: different === 0 }];
}
