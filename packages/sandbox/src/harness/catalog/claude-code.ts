// Claude Code of Anthropic. Without prompt caching its old messages stay the same from turn to turn.

import type { Harness } from '../harness.ts';

export const claudeCode: Harness = {
  name: 'claude-code',
  registry: 'npm',
  package: '@anthropic-ai/claude-code',
  version: '2.1.325',
  with: [],
  runtime: 'none',
  program: 'node_modules/@anthropic-ai/claude-code-linux-{{arch}}/claude',
  args: [
    ...['-p', '--dangerously-skip-permissions', '--output-format', 'stream-json', '--verbose'],
    ...['--tools', 'Bash,Edit,Read,Write', '--', '{{prompt}}'],
  ],
  stdin: '',
  env: {
    ANTHROPIC_BASE_URL: '{{url}}',
    ANTHROPIC_AUTH_TOKEN: '{{key}}',
    ANTHROPIC_MODEL: '{{model}}',
    IS_SANDBOX: '1',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_PROMPT_CACHING: '1',
    CLAUDE_CODE_ATTRIBUTION_HEADER: '0',
    CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS: '1',
  },
  files: {},
  wire: 'messages',
  memoryMiB: 1024,
};
