// How words become arguments: positionals that were not declared, numbers, durations and choices.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Command, CommandGroup } from '../../src/command/command.ts';
import { isGroup } from '../../src/command/command.ts';
import { parseArguments } from '../../src/command/parse-arguments.ts';
import { commands, firstSteps } from '../../src/main.ts';
import { millrace, openIo } from '../fake-io.ts';

const make = (positional?: string): Command => ({
  name: 'thing',
  summary: '',
  options: {
    wait: { type: 'string', describe: '' },
    set: { type: 'string', multiple: true, describe: '' },
    color: { type: 'string', describe: '' },
  },
  examples: [],
  run: async () => 0,
  ...(positional === undefined ? {} : { positional }),
});

test('a command takes as many positional arguments as it declares', () => {
  const table: [string | undefined, string[], RegExp | undefined][] = [
    [undefined, ['extra'], /thing takes no arguments, but got extra/],
    ['<id>', [], /thing needs <id>/],
    ['<id>', ['a', 'b'], /thing takes only <id>, but got b/],
    ['[file|-]', [], undefined],
    ['[file|-]', ['-'], undefined],
    ['[file|-]', ['a', 'b'], /but got b/],
    ['<add|rm> [image …]', ['add', 'a', 'b'], undefined],
    ['<id …>', [], /thing needs <id …>/],
    ['<id …>', ['a', 'b'], undefined],
  ];
  for (const [positional, argv, wanted] of table) {
    if (wanted === undefined) assert.deepEqual(parseArguments(make(positional), argv).positionals, argv);
    else assert.throws(() => parseArguments(make(positional), argv), wanted);
  }
});

test('durations, choices and repeated options are read', () => {
  const read = (argv: string[]) => parseArguments(make(), argv);
  const ms = ['500ms', '90s', '1.5m', '2h'].map((text) => read(['--wait', text]).duration('wait'));
  assert.deepEqual(ms, [500, 90_000, 90_000, 7_200_000]);
  assert.throws(() => read(['--wait', '10']).duration('wait'), /--wait 10 is not a duration such as 90s/);
  assert.equal(read(['--color', 'red']).choice('color', ['red', 'blue']), 'red');
  assert.throws(() => read(['--color', 'pink']).choice('color', ['red', 'blue']), /--color pink is not one of red, blue/);
  assert.deepEqual(read(['--set', 'a=1', '--set', 'b=2']).list('set'), ['a=1', 'b=2']);
  assert.deepEqual(read([]).list('set'), []);
});

async function loadGroups(): Promise<readonly (Command | CommandGroup)[]> {
  return await Promise.all(Object.values(commands).map(({ load }) => load()));
}

async function loadAll(): Promise<readonly Command[]> {
  return (await loadGroups()).flatMap((one) => (isGroup(one) ? Object.values(one.actions) : [one]));
}

test('every command that takes no arguments refuses one', async () => {
  for (const command of await loadAll()) {
    if (command.positional !== undefined) continue;
    const { code, err } = await millrace([...command.name.split(' '), 'extra'], openIo());
    assert.equal(code, 2, command.name);
    assert.match(err, new RegExp(`${command.name} takes no arguments, but got extra`));
  }
});

/** The words of each `millrace …` in a shell line, without redirections and comments. */
function toCalls(line: string): string[][] {
  return line
    .split(/ \| | > | >> | # /)
    .map((part) => [...part.trim().matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? ''))
    .filter(([program]) => program === 'millrace')
    .map(([, ...words]) => words);
}

test('every example in the help is a command line that its command accepts', async () => {
  const all = await loadAll();
  const usual = new Map((await loadGroups()).filter(isGroup).map((group) => [group.name, group.actions[group.usual]]));
  for (const line of [...all.flatMap(({ examples }) => examples), ...firstSteps.map(([step]) => step)]) {
    const calls = toCalls(line);
    assert.ok(calls.length > 0, line);
    for (const words of calls) {
      if (words[0] === '--version') continue;
      const named = all.filter(({ name }) => `${words.join(' ')} `.startsWith(`${name} `)).sort((a, b) => b.name.length - a.name.length)[0];
      const command = named ?? usual.get(words[0] ?? '');
      assert.ok(command, `no command for: ${line}`);
      assert.doesNotThrow(() => parseArguments(command, words.slice(named === undefined ? 1 : command.name.split(' ').length)), line);
    }
  }
});
