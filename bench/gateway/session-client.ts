// The scripted client of many harness sessions at once, as its own process: each session asks, reads the stream, acts for a while, and
// sends its whole history with a new message. It prints how many turns were answered, once a second.
//
//   node session-client.ts SERVICE_URL ENGINE_URL SESSIONS ACT_MS

import { setTimeout as pause } from 'node:timers/promises';
import { openSession, openTimedClient, readContent, type StreamedCall, toDirect } from './timed-stream.ts';

const [serviceUrl = '', engineUrl = '', sessions = '0', actMs = '0'] = process.argv.slice(2);
const count = Number(sessions);
const call = openTimedClient(count);
const tools = ['bash', 'edit', 'read', 'write'].map((name) => ({
  type: 'function',
  function: { name, description: `${name} of the harness.`, parameters: { type: 'object', properties: { command: { type: 'string' } } } },
}));
let [turns, failed] = [0, 0];

for (let at = 0; at < count; at += 1) {
  void play(at);
  await pause(Math.max(1, 10_000 / count));
}
process.stdout.write('started\n');
for (;;) {
  await pause(1000);
  process.stdout.write(`${JSON.stringify({ turns, failed })}\n`);
}

/** Without a service, the engine itself is called at the same pace. */
async function play(at: number): Promise<void> {
  const session = serviceUrl === '-' ? undefined : await openSession(serviceUrl);
  let messages = [{ role: 'system', content: `Be a harness.${' rule'.repeat(2000)}` }];
  for (let turn = 0; ; turn += 1) {
    messages.push({ role: 'user', content: `Step ${turn} of session ${at}.${' line'.repeat(100)}` });
    if (messages.length > 40) messages = messages.slice(0, 2); // an opening of its own again
    const body = { model: 'm', stream: true, messages, tools };
    const next: StreamedCall = session ? { url: session.url, key: session.key, body, first: 'data' } : toDirect(engineUrl, 2000);
    try {
      messages.push({ role: 'assistant', content: readContent((await call(next)).text) });
      turns += 1;
    } catch {
      failed += 1; // counted: the benchmark fails if there is any
      messages.pop();
    }
    await pause(Number(actMs) * (0.5 + ((at * 7919 + turn * 104_729) % 1000) / 1000));
  }
}
