// The text of single tokens, for the token view. The server needs no tokenizer for anything else, so the files of the model are read when
// the first token view is opened.

import { openTokenizer, type Tokenizer } from '@millrace/model';
import { messageOf, type TokenPieces } from '@millrace/protocol';

interface PieceReader {
  read(tokenIds: readonly Iterable<number>[]): Promise<TokenPieces>;
}

/** `source` is the folder of the model; an address has no files to read. */
export function openPieces(source: string | undefined): PieceReader {
  let opened: Promise<Tokenizer> | undefined;
  return {
    async read(tokenIds) {
      if (source === undefined || /^https?:/.test(source))
        return { pieces: null, reason: 'the tokenizer of this service is not in a folder, so single tokens are shown by their ids' };
      try {
        opened ??= openTokenizer(source);
        const tokenizer = await opened;
        const ids = new Set(tokenIds.flatMap((some) => [...some]));
        return { pieces: Object.fromEntries([...ids].map((id) => [id, tokenizer.decode([id])])) };
      } catch (error) {
        opened = undefined;
        return { pieces: null, reason: messageOf(error) };
      }
    },
  };
}
