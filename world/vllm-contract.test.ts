// The vLLM adapter against a real vLLM with a real model, on both token routes.

import { openSharedVllm } from './engines/shared-engines.ts';
import { contextTokens, skipWithoutVllm } from './engines/vllm.ts';
import { defineEngineSuite } from './suite/engine-suite.ts';

const shared = { contextTokens, skip: skipWithoutVllm(), open: openSharedVllm };
defineEngineSuite('vLLM, /inference/v1/generate', { dialect: 'vllm', ...shared });
defineEngineSuite('vLLM, /v1/completions', { dialect: 'vllm-completions', ...shared });
