// mini-swe-agent, in Python: one tool, bash. It ends when a command prints COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT. It needs `mcp` as well.

import type { Harness } from '../harness.ts';

export const miniSweAgent: Harness = {
  name: 'mini-swe-agent',
  registry: 'pypi',
  package: 'mini-swe-agent',
  version: '2.4.6',
  with: ['mcp==2.3.0'],
  runtime: 'python',
  program: 'python/site/bin/mini',
  args: ['-m', 'openai/{{model}}', '-y', '--exit-immediately', '-l', '0', '--task={{prompt}}', '-o', '{{home}}/trajectory.json'],
  stdin: '',
  env: {
    MSWEA_CONFIGURED: 'true',
    MSWEA_COST_TRACKING: 'ignore_errors',
    OPENAI_API_KEY: '{{key}}',
    OPENAI_API_BASE: '{{url}}/v1',
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  },
  files: {},
  wire: 'chat',
  memoryMiB: 1024,
};
