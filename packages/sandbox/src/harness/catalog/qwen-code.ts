// Qwen Code of Alibaba.

import type { Harness } from '../harness.ts';

export const qwenCode: Harness = {
  name: 'qwen-code',
  registry: 'npm',
  package: '@qwen-code/qwen-code',
  version: '0.24.4',
  with: [],
  runtime: 'node',
  program: 'node_modules/@qwen-code/qwen-code/cli.js',
  args: ['--yolo', '-o', 'stream-json', '--prompt={{prompt}}'],
  stdin: '',
  env: { OPENAI_API_KEY: '{{key}}', OPENAI_BASE_URL: '{{url}}/v1', OPENAI_MODEL: '{{model}}', QWEN_CODE_NO_RELAUNCH: 'true' },
  files: {
    '.qwen/settings.json': JSON.stringify({
      privacy: { usageStatisticsEnabled: false },
      security: { auth: { selectedType: 'openai' } },
    }),
  },
  wire: 'chat',
  memoryMiB: 1024,
};
