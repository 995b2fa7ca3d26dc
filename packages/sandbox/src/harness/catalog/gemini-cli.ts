// Gemini CLI of Google. A model's name on the command line switches its router off, which would be a side call.

import type { Harness } from '../harness.ts';

export const geminiCli: Harness = {
  name: 'gemini-cli',
  registry: 'npm',
  package: '@google/gemini-cli',
  version: '0.61.0',
  with: [],
  runtime: 'node',
  program: 'node_modules/@google/gemini-cli/bundle/gemini.js',
  args: ['-m', '{{model}}', '--approval-mode', 'yolo', '--skip-trust', '-o', 'stream-json', '--prompt={{prompt}}'],
  stdin: '',
  env: { GEMINI_API_KEY: '{{key}}', GOOGLE_GEMINI_BASE_URL: '{{url}}', GEMINI_CLI_TRUST_WORKSPACE: 'true', GEMINI_CLI_NO_RELAUNCH: 'true' },
  files: {
    '.gemini/settings.json': JSON.stringify({
      privacy: { usageStatisticsEnabled: false },
      security: { auth: { selectedType: 'gemini-api-key' } },
    }),
  },
  wire: 'gemini',
  memoryMiB: 1024,
};
