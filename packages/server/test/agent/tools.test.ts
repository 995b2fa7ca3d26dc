// The built-in tools by name.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toolNames } from '../../src/agent/tool-names.ts';
import { openTool } from '../../src/agent/tools.ts';

test('every name opens the tool of that name, and any other name is refused', () => {
  for (const name of toolNames) assert.equal(openTool(name).spec.name, name);
  for (const name of ['vim', 'constructor']) assert.throws(() => openTool(name), /no tool is named/);
});

test('each rollout has its own file editor', () => {
  assert.notEqual(openTool('str_replace_editor'), openTool('str_replace_editor'));
});
