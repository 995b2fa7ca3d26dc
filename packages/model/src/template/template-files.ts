// The files of a model that its chat template comes from, and the digests of what was read.

import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '@millrace/protocol';
import { z } from 'zod';
import type { ChatTemplate } from './chat-template.ts';

/** A .jinja file, or a tokenizer_config.json. Throws an Error that names the file. */
export async function readTemplate(path: string): Promise<Record<string, unknown>> {
  try {
    const text = await readFile(path, 'utf8');
    return path.endsWith('.json') ? jsonObject.parse(JSON.parse(text)) : { chat_template: text };
  } catch (error) {
    const why = error instanceof z.ZodError ? 'it is no object' : messageOf(error);
    throw new Error(
      `the chat template ${path} cannot be read: ${why}. Set model.chatTemplate to a .jinja file or a tokenizer_config.json`,
      {
        cause: error,
      },
    );
  }
}

const jsonObject = z.record(z.string(), z.unknown());

/** From a separate file; older folders have the template in tokenizer_config.json. */
export async function readOwnTemplate(folder: string): Promise<Record<string, unknown>> {
  const names = await readdir(folder);
  const name = ['chat_template.jinja', 'chat_template.json'].find((one) => names.includes(one));
  return name === undefined ? {} : await readTemplate(join(folder, name));
}

export function describeNoTemplate(folder: string, chatTemplate: string | undefined): string {
  if (chatTemplate !== undefined) return `${chatTemplate} has no chat_template. Set model.chatTemplate to a file that has one`;
  return (
    `no chat template in ${folder}: it has neither chat_template.jinja nor a chat_template in tokenizer_config.json. ` +
    "Copy it from the model's repository, or set model.chatTemplate to a .jinja file; a base model has none, so take the one of its chat model"
  );
}

export function toDigest(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

/** Of the Jinja source, followed by the variables as JSON if there are any. */
export function digestTemplate({ source }: ChatTemplate, kwargs: Readonly<Record<string, unknown>> = {}): string {
  return toDigest(Object.keys(kwargs).length === 0 ? source : source + JSON.stringify(kwargs));
}
