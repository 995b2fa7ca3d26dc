// Pi, a small coding agent with four tools.

import type { Harness } from '../harness.ts';

const models = {
  providers: {
    gateway: {
      baseUrl: '{{url}}/v1',
      api: 'openai-completions',
      apiKey: '{{key}}',
      models: [{ id: '{{model}}', reasoning: true, contextWindow: 131_072, maxTokens: 32_768 }],
    },
  },
};

export const pi: Harness = {
  name: 'pi',
  registry: 'npm',
  package: '@earendil-works/pi-coding-agent',
  version: '0.87.1',
  with: [],
  runtime: 'node',
  program: 'node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js',
  args: ['--offline', '--provider', 'gateway', '--model', '{{model}}', '--mode', 'json', '-p'],
  stdin: '{{prompt}}',
  env: {},
  files: { '.pi/agent/models.json': JSON.stringify(models, undefined, 2) },
  wire: 'chat',
  memoryMiB: 512,
};
