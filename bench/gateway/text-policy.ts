// The model of the benchmarks of the gateway: a text of a fixed number of tokens that is the same for every prompt, and never decodes one.

import type { Policy } from '@millrace/testkit';

export const textTokens = 48;

let tokenIds: Int32Array | undefined;

export const policy: Policy = ({ encode }) => {
  tokenIds ??= encode(' word'.repeat(textTokens)).slice(0, textTokens - 1);
  return { tokenIds };
};
