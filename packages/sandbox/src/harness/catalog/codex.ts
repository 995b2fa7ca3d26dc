// Codex of OpenAI. It is static, so any image runs it. Everything that would call other hosts is switched off.

import type { Harness } from '../harness.ts';

const off = ['multi_agent', 'goals', 'plugins', 'apps', 'remote_plugin', 'plugin_sharing'];

export const codex: Harness = {
  name: 'codex',
  registry: 'npm',
  package: '@openai/codex',
  version: '0.166.0',
  with: [],
  runtime: 'none',
  program: 'node_modules/@openai/codex-linux-{{arch}}/vendor/{{machine}}-unknown-linux-musl/bin/codex',
  args: [
    ...['exec', '--dangerously-bypass-approvals-and-sandbox', '--skip-git-repo-check', '--json'],
    ...['-c', 'web_search=disabled', '-c', 'analytics.enabled=false', '-c', 'check_for_update_on_startup=false'],
    ...off.flatMap((name) => ['--disable', name]),
    ...['--', '{{prompt}}'],
  ],
  stdin: '',
  env: { GATEWAY_KEY: '{{key}}' },
  files: {
    '.codex/config.toml': `model = "{{model}}"
model_provider = "gateway"
[model_providers.gateway]
name = "gateway"
base_url = "{{url}}/v1"
env_key = "GATEWAY_KEY"
wire_api = "responses"
`,
  },
  wire: 'responses',
  memoryMiB: 512,
};
