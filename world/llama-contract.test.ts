// The llama.cpp adapter against a real llama-server with a real model.

import { llamaContextTokens, skipWithoutLlama } from './engines/llama.ts';
import { openSharedLlama } from './engines/shared-engines.ts';
import { defineEngineSuite } from './suite/engine-suite.ts';

defineEngineSuite('llama-server', {
  dialect: 'llamacpp',
  contextTokens: llamaContextTokens,
  skip: skipWithoutLlama(),
  open: openSharedLlama,
});
