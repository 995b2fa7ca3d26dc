// The tools of a task against the configuration: what is refused when a task is submitted, and by which field.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeIssues } from '@millrace/protocol';
import { loadScenarios } from '../src/load/load.ts';
import { outsideConfig } from '../src/tools/outside/outside-config.ts';

const config = outsideConfig.parse({
  http: { web_search: { description: 'Searches.', url: 'http://localhost:1/search' } },
  mcp: { docs: { url: 'http://localhost:1/mcp' } },
});
const scenarios = await loadScenarios([], { tools: config });

async function fault(tools: unknown, name = 'math'): Promise<string> {
  const base = name === 'math' ? { question: 'q', answer: '1' } : { instruction: 'i', check: 'true' };
  const parsed = await scenarios.get(name)?.task.safeParseAsync({ ...base, tools });
  return parsed?.success === false ? describeIssues(parsed.error.issues) : '';
}

test('a task may choose built-in tools, tools of the configuration, and servers in its sandbox', async () => {
  assert.equal(await fault(['think', 'web_search', 'docs', 'finish']), '');
  assert.equal(
    await fault([
      { mcp: 'docs', only: ['lookup'] },
      { mcp: 'own', command: ['node', 'x.js'], env: { A: '1' } },
    ]),
    '',
  );
});

test('a name that the service does not have is refused with its place', async () => {
  assert.equal(
    await fault(['bash', 'websearch']),
    'tools.1: no tool is named websearch; the built-in tools are bash, ipython, str_replace_editor, think, finish, submit, and those of the configuration are web_search, docs',
  );
  assert.match(
    await fault([{ mcp: 'other' }], 'shell'),
    /^tools\.0: no MCP server is named other: the configuration has docs; one that runs in/,
  );
  assert.match(await fault(['constructor']), /^tools\.0: no tool is named constructor/);
});

test('a task can name no address, no header and no secret', async () => {
  assert.match(await fault([{ mcp: 'docs', url: 'http://169.254.169.254/' }]), /^tools\.0: Unrecognized key: "url"/);
  assert.match(await fault([{ mcp: 'docs', headers: {} }]), /^tools\.0: Unrecognized key: "headers"/);
  assert.match(await fault(['http://169.254.169.254/']), /^tools\.0: expected the name of a tool/);
  assert.match(await fault([{ mcp: 'docs', env: { KEY: '1' } }]), /^tools\.0\.command: env and cwd are for a server with a command/);
});

test('a server in the sandbox gives a task without other tools a sandbox', async () => {
  const math = scenarios.get('math');
  const sandboxOf = async (tools: unknown[]) => {
    const parsed = await math?.task.safeParseAsync({ question: 'q', answer: '1', tools });
    return parsed?.success ? math?.sandbox?.(parsed.data) : assert.fail();
  };
  assert.deepEqual([await sandboxOf(['web_search']), await sandboxOf([{ mcp: 'own', command: ['x'] }])], [undefined, {}]);
});

test('a name of the configuration must not be that of a built-in tool or of another one', () => {
  const tool = { description: 'x', url: 'http://localhost' };
  assert.match(outsideConfig.safeParse({ http: { bash: tool } }).error?.message ?? '', /a built-in tool has this name/);
  assert.match(
    outsideConfig.safeParse({ http: { a: tool }, mcp: { a: { url: 'http://localhost' } } }).error?.message ?? '',
    /an HTTP tool has this name/,
  );
  assert.match(
    outsideConfig.safeParse({ http: { a: { ...tool, url: 'file:///etc/passwd' } } }).error?.message ?? '',
    /http:\/\/ or https:\/\//,
  );
});
