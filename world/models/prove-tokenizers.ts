// The verdict on a published tokenizer: whether ours gives the ids of the reference's, and no text forges a control token.

import { openCollection } from '../tokenizers/collection.ts';
import { compareTokenizer } from '../tokenizers/compare.ts';
import { openNewCharacters } from '../tokenizers/unicode-tables.ts';

/** Enough to meet every kind of text; `node world/tokenizers/compare.ts` compares thousands. */
export const comparedTexts = 400;

export async function proveTokenizers(names: ReadonlySet<string>): Promise<ReadonlyMap<string, string>> {
  const verdicts = new Map<string, string>();
  const isNew = openNewCharacters();
  for (const published of openCollection((name) => names.has(name))) {
    const { name, differences, forged } = await compareTokenizer(published, { count: comparedTexts, isNew, measuresSteps: false });
    const isProven = differences.length + forged === 0;
    verdicts.set(
      name,
      isProven ? `proven: \`${name}\`` : `refused: ${differences.length} of ${comparedTexts} texts differ, ${forged} forge a token`,
    );
  }
  return verdicts;
}
