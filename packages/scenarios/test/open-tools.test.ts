// Custom tools behind the adapter that the turn loop runs: arguments, time, failures, and what the model reads.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RolloutError } from '@millrace/protocol';
import { z } from 'zod';
import { type CustomTool, defineTool } from '../src/custom-tool.ts';
import { openTools } from '../src/open-tools.ts';
import { ScenarioError } from '../src/scenario-error.ts';
import type { ToolContext } from '../src/tools/tool.ts';

const parameters = z.object({ city: z.string().describe('Its name.'), days: z.int().min(1).default(1) });
type Arguments = z.infer<typeof parameters>;

const makeTool = (run: CustomTool<Arguments>['run']) =>
  defineTool({ name: 'weather', description: 'Reports the weather.', parameters, run });

function open(run: CustomTool<Arguments>['run']) {
  const [tool] = openTools([makeTool(run)]);
  assert.ok(tool);
  return tool;
}

const context = (fields: Partial<ToolContext> = {}): ToolContext => ({
  timeoutMs: 10_000,
  signal: new AbortController().signal,
  ...fields,
});

test('the model is offered a custom tool as JSON Schema, where a field with a default is optional', () => {
  assert.deepEqual(open(() => '').spec, {
    name: 'weather',
    description: 'Reports the weather.',
    parameters: {
      type: 'object',
      properties: {
        city: { type: 'string', description: 'Its name.' },
        days: { type: 'integer', minimum: 1, maximum: 9007199254740991, default: 1 },
      },
      required: ['city'],
    },
  });
});

test('a custom tool gets parsed arguments, and returns text or ends the agent part', async () => {
  const tool = open(({ city, days }) => (days === 1 ? `${city}: rain` : { finish: `${city} ${days}` }));
  assert.deepEqual(await tool.run({ city: 'Oslo' }, context()), { kind: 'text', text: 'Oslo: rain' });
  assert.deepEqual(await tool.run({ city: 'Oslo', days: 3 }, context()), { kind: 'finish', answer: 'Oslo 3' });
});

test('arguments that do not match are a result that names the fields, and the tool is not run', async () => {
  const tool = open(() => assert.fail('it ran'));
  const result = await tool.run({ city: 7, days: 0 }, context());
  assert.match(result.kind === 'text' ? result.text : '', /^weather: city: .*; days: /);
});

test('a tool that is out of time is a result, and its signal aborts', async () => {
  let seen: AbortSignal | undefined;
  const tool = open((_, { signal }) => {
    seen = signal;
    return new Promise(() => {});
  });
  const result = await tool.run({ city: 'Oslo' }, context({ timeoutMs: 20 }));
  assert.deepEqual(result, { kind: 'text', text: '[weather did not finish within 0.02 s and was stopped]' });
  assert.equal(seen?.aborted, true);
});

test('the end of the rollout ends the tool with its own reason', async () => {
  const stop = new AbortController();
  const tool = open(() => {
    stop.abort(new RolloutError('cancelled', 'stop'));
    return new Promise(() => {});
  });
  await assert.rejects(tool.run({ city: 'Oslo' }, context({ signal: stop.signal })), { code: 'cancelled' });
});

test('an exception is blamed on the scenario, with the file and the line', async () => {
  const tool = open(() => {
    throw new TypeError('no such city');
  });
  await assert.rejects(tool.run({ city: 'Oslo' }, context()), (error: RolloutError) => {
    assert.deepEqual([error.code, error.blame], ['tool-failed', 'task']);
    assert.match(error.message, /^the tool weather: TypeError: no such city \(\/.*open-tools\.test\.ts:\d+:\d+\)$/);
    return true;
  });
});

test('an exception with a blame keeps it, and so does a failure of the sandbox', async () => {
  const thrown: [Error, string][] = [
    [new ScenarioError('sandbox', 'the database is down'), 'sandbox-failed'],
    [new ScenarioError('policy', 'it deleted the table'), 'policy-failed'],
    [new RolloutError('sandbox-died', 'gone'), 'sandbox-died'],
    // The agent may have removed the file.
    [new RolloutError('not-found', 'no such file'), 'policy-failed'],
  ];
  for (const [error, code] of thrown) {
    const tool = open(() => {
      throw error;
    });
    await assert.rejects(tool.run({ city: 'Oslo' }, context()), { code });
  }
});

test('a result that is neither text nor an end, and a sandbox that was not asked for, are failures of the scenario', async () => {
  const broken: [CustomTool<Arguments>['run'], RegExp][] = [
    [() => 7 as unknown as string, /returned 7: return a string/],
    [() => undefined as unknown as string, /returned undefined: return a string/],
    [(_, { sandbox }) => sandbox.id, /has no `sandbox` function/],
  ];
  for (const [run, message] of broken) await assert.rejects(open(run).run({ city: 'Oslo' }, context()), { code: 'tool-failed', message });
});

test('a definition that no model can use is refused when it is written', () => {
  const run = () => '';
  const description = 'x';
  const bad: [Record<string, unknown>, RegExp][] = [
    [{ name: 'two words', description, parameters, run }, /use 1 to 64 letters/],
    [{ name: 'bash', description, parameters, run }, /the name of a built-in tool/],
    [{ name: 'a', parameters, run }, /no description/],
    [{ name: 'a', description, parameters }, /no function `run`/],
    [{ name: 'a', description, parameters: z.string(), run }, /must be a zod 4 object schema/],
    [{ name: 'a', description, parameters: z.object({ at: z.date() }), run }, /must be a zod 4 object schema/],
    [{ name: 'a', description, parameters: {}, run }, /must be a zod 4 object schema/],
  ];
  for (const [tool, message] of bad) assert.throws(() => defineTool(tool as unknown as CustomTool), message);
});

test('built-in and custom tools are offered in the order given, and a name twice is refused', () => {
  const weather = makeTool(() => '');
  assert.deepEqual(
    openTools(['bash', weather, 'finish']).map(({ spec }) => spec.name),
    ['bash', 'weather', 'finish'],
  );
  assert.throws(() => openTools([weather, weather]), /two tools are named weather/);
  assert.throws(() => openTools(['vim' as 'bash']), /no tool is named vim/);
});
