// OpenCode. With a title it makes no side call for one. A prompt that is an argument would be put in quotes.

import type { Harness } from '../harness.ts';

const config = {
  provider: {
    gateway: {
      npm: '@ai-sdk/openai-compatible',
      options: { baseURL: '{{url}}/v1', apiKey: '{{key}}' },
      models: { '{{model}}': { name: '{{model}}' } },
    },
  },
  model: 'gateway/{{model}}',
  permission: { '*': 'allow' },
  autoupdate: false,
  share: 'disabled',
};

export const opencode: Harness = {
  name: 'opencode',
  registry: 'npm',
  package: 'opencode-ai',
  version: '1.18.33',
  with: [],
  runtime: 'none',
  program: 'node_modules/opencode-linux-{{arch}}/bin/opencode',
  args: ['run', '--auto', '--title', 'task', '--format', 'json'],
  stdin: '{{prompt}}',
  env: { OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_CONFIG: '{{home}}/opencode.json' },
  files: { 'opencode.json': JSON.stringify(config, undefined, 2) },
  wire: 'chat',
  memoryMiB: 2048,
};
