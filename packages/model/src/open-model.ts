// Opens the model of a configuration: its tokenizer and chat template, from a folder or from a backend.

import { type Conversation, openConversation } from './conversation.ts';
import type { ModelConfig } from './model-config.ts';
import { openRemoteConversation } from './remote-conversation.ts';

export function isAddress(tokenizer: string): boolean {
  return /^https?:\/\//.test(tokenizer);
}

/** Throws an Error that names the folder or the address and what is wrong with it. */
export async function openModel({ tokenizer, tokenizerApiKey: apiKey, ...options }: ModelConfig): Promise<Conversation> {
  if (tokenizer === undefined) throw new Error('no tokenizer is set: pass --tokenizer FOLDER, or the address of a backend');
  return isAddress(tokenizer)
    ? await openRemoteConversation(tokenizer, { ...options, apiKey })
    : await openConversation(tokenizer, options);
}
