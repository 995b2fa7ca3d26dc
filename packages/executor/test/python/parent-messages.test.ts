// The messages of the Python parent, written by a program that may be an agent's.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { openMessages } from '../../src/python/parent-messages.ts';

/** A process that writes this to its file descriptor 3 and then waits. */
function openWriter(expression: string) {
  const program = `require('node:net').Socket({ fd: 3 }).write(${expression}); setInterval(() => {}, 1000)`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'ignore', 'pipe', 'pipe'] });
  return { child, next: openMessages(child), [Symbol.dispose]: () => child.kill('SIGKILL') };
}

test('messages arrive in order, also if they come in one piece', async () => {
  using writer = openWriter(`'{"event": "ready", "output": 7}\\n{"event": "host", "pid": 9}\\n'`);
  assert.deepEqual(await writer.next(), { event: 'ready', output: 7 });
  assert.deepEqual(await writer.next(), { event: 'host', pid: 9 });
});

const refused: Readonly<Record<string, string>> = {
  'a line that is not JSON': `'not JSON\\n'`,
  'JSON that is no object': `'null\\n'`,
  'an unknown event': `'{"event": "other"}\\n'`,
  'an object without an event': `'{}\\n'`,
  'a line without an end': `'x'.repeat(1 << 24)`,
  'a flood of messages': `'{"event": "exit"}\\n'.repeat(100_000)`,
};

for (const [what, expression] of Object.entries(refused)) {
  test(`${what} ends the parent`, async () => {
    using writer = openWriter(expression);
    const [, signal] = await once(writer.child, 'exit');
    assert.equal(signal, 'SIGKILL');
    let last = await writer.next();
    for (let count = 0; count < 20 && last.event !== 'end'; count += 1) last = await writer.next();
    assert.equal(last.event, 'end');
  });
}
