// HTTP tools against a server of this file: what the model reads, who is to blame, and where no request ever goes.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { RolloutError } from '@millrace/protocol';
import type { z } from 'zod';
import { outsideConfig } from '../../../src/tools/outside/outside-config.ts';
import { OutsideTools } from '../../../src/tools/outside/outside-tools.ts';
import type { Tool, ToolContext } from '../../../src/tools/tool.ts';

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

type Answer = (seen: Seen, response: ServerResponse, count: number) => void;

async function openStub(answer: Answer) {
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const one = { method: request.method ?? '', url: request.url ?? '', headers: request.headers, body };
    seen.push(one);
    answer(one, response, seen.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  return { seen, url: `http://127.0.0.1:${port}/search`, close, [Symbol.asyncDispose]: close };
}

const parameters = { type: 'object' as const, properties: { query: { type: 'string' } }, required: ['query'] };

type ToolConfig = NonNullable<z.input<typeof outsideConfig>['http']>[string];

async function openTool(config: Partial<ToolConfig> & { readonly url: string }, env = {}) {
  const http = { search: { description: 'Searches.', parameters, ...config } };
  const outside = new OutsideTools(outsideConfig.parse({ http }), env);
  const { tools } = await outside.open('search', context());
  const [tool] = tools;
  assert.ok(tool);
  return { tool, [Symbol.asyncDispose]: () => outside[Symbol.asyncDispose]() };
}

const context = (fields: Partial<ToolContext> = {}): ToolContext => ({
  timeoutMs: 10_000,
  signal: new AbortController().signal,
  ...fields,
});

async function read(tool: Tool, args: Record<string, unknown> = { query: 'tea' }, fields: Partial<ToolContext> = {}): Promise<string> {
  const result = await tool.run(args, context(fields));
  return result.kind === 'text' ? result.text : assert.fail('it finished');
}

test('the arguments are the body, the reply is what the model reads, and the model is offered the schema of the configuration', async () => {
  await using stub = await openStub((_, response) => response.end('three results\n'));
  await using opened = await openTool({ url: stub.url });
  assert.deepEqual(opened.tool.spec, { name: 'search', description: 'Searches.', parameters });
  assert.equal(await read(opened.tool), 'three results');
  assert.deepEqual(
    stub.seen.map(({ method, url, body }) => [method, url, body]),
    [['POST', '/search', '{"query":"tea"}']],
  );
});

test('with GET the arguments are the query, which cannot change the address', async () => {
  await using stub = await openStub((_, response) => response.end());
  await using opened = await openTool({ url: `${stub.url}?key=1`, method: 'GET' });
  assert.equal(await read(opened.tool, { query: '../../x#?&key=2', more: [1] }), '[no output]');
  assert.equal(stub.seen[0]?.url, '/search?key=1&query=..%2F..%2Fx%23%3F%26key%3D2&more=%5B1%5D');
});

test('arguments that do not match are a result that names the field, and nothing is sent', async () => {
  await using stub = await openStub(() => assert.fail('it was called'));
  await using opened = await openTool({ url: stub.url });
  assert.match(await read(opened.tool, { query: 7 }), /^search: query: /);
});

test('a secret of a header is sent, and hidden when the server repeats it to the agent', async () => {
  await using stub = await openStub(({ headers }, response) => response.end(`you sent ${headers.authorization} and ${headers['x-team']}`));
  const headers = { authorization: `Bearer \${SEARCH_KEY}`, 'x-team': 'blue-team-7' };
  await using opened = await openTool({ url: stub.url, headers }, { SEARCH_KEY: 'k-123456' });
  assert.equal(await read(opened.tool), 'you sent [hidden] and [hidden]');
  assert.deepEqual([stub.seen[0]?.headers.authorization, stub.seen[0]?.headers['x-team']], ['Bearer k-123456', 'blue-team-7']);
});

test('a variable that is not set stops the start and is named', () => {
  const http = { search: { description: 'x', url: 'http://localhost', headers: { 'x-key': `\${SEARCH_KEY}` } } };
  assert.throws(
    () => new OutsideTools(outsideConfig.parse({ http }), {}),
    /^Error: tools\.http\.search, header x-key: the environment variable SEARCH_KEY is not set$/,
  );
});

test('a redirect is not followed: the address and the headers stay where the operator put them', async () => {
  await using target = await openStub(() => assert.fail('it was followed'));
  await using stub = await openStub((_, response) => response.writeHead(307, { location: target.url }).end());
  await using opened = await openTool({ url: stub.url });
  assert.equal(await read(opened.tool), '[search failed with status 307: redirects are not followed]');
  assert.equal(target.seen.length, 0);
});

test('what a server answers is a result for the agent, also an error of its own', async () => {
  await using stub = await openStub(({ body }, response) => response.writeHead(body.includes('bad') ? 400 : 500).end('no such page'));
  await using opened = await openTool({ url: stub.url });
  assert.equal(await read(opened.tool, { query: 'bad' }), '[search failed with status 400]\nno such page');
  assert.equal(await read(opened.tool), '[search failed with status 500]\nno such page');
  assert.equal(stub.seen.length, 2);
});

test('a server that is busy is asked again', async () => {
  await using stub = await openStub((_, response, count) => response.writeHead(count < 3 ? 503 : 200).end(`answer ${count}`));
  await using opened = await openTool({ url: stub.url });
  assert.equal(await read(opened.tool), 'answer 3');
});

const isUnavailable = (error: unknown) =>
  error instanceof RolloutError && error.code === 'tool-unavailable' && error.blame === 'sandbox' && error.retryable;

test('a server that is down or does not accept the key is blamed on the environment, after retries', async () => {
  const gone = await openStub(() => {});
  await gone.close();
  await using down = await openTool({ url: gone.url, attempts: 2 });
  await assert.rejects(
    read(down.tool),
    (error) => isUnavailable(error) && /search at http:\/\/127.0.0.1:\d+ could not be reached/.test(String(error)),
  );
  await using stub = await openStub((_, response) => response.writeHead(401).end('wrong key k-123456'));
  await using refused = await openTool({ url: stub.url, attempts: 2, headers: { 'x-key': 'k-123456' } });
  await assert.rejects(read(refused.tool), (error) => isUnavailable(error) && /status 401: wrong key \[hidden\]/.test(String(error)));
  assert.equal(stub.seen.length, 2);
});

test('out of time between two attempts is blamed on the server too', async () => {
  await using stub = await openStub((_, response) => response.writeHead(503).end());
  await using opened = await openTool({ url: stub.url, attempts: 10 });
  await assert.rejects(read(opened.tool, undefined, { timeoutMs: 800 }), isUnavailable);
});

test('a connection that breaks every time is a result, since the call may be what breaks it', async () => {
  await using stub = await openStub((_, response) => response.socket?.destroy());
  await using opened = await openTool({ url: stub.url, attempts: 2 });
  assert.match(await read(opened.tool), /^\[search failed: the server of search at .* could not be reached: /);
  await using half = await openStub((_, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('half', () => response.socket?.destroy());
  });
  await using cut = await openTool({ url: half.url });
  assert.match(await read(cut.tool), /^\[search failed: /);
});

test('a server that does not answer in time is a result, and its request is cancelled', async () => {
  const closed = Promise.withResolvers<void>();
  await using stub = await openStub((_, response) => response.on('close', () => closed.resolve()));
  await using opened = await openTool({ url: stub.url, timeoutSeconds: 0.2 });
  assert.equal(await read(opened.tool), '[search did not answer within 0.2 s and was cancelled]');
  await closed.promise;
  await using slow = await openStub((_, response) => response.writeHead(200).write('a beginning'));
  await using endless = await openTool({ url: slow.url });
  assert.equal(await read(endless.tool, undefined, { timeoutMs: 200 }), '[search did not answer within 0.2 s and was cancelled]');
});

test('a cancelled rollout ends the call with its reason', async () => {
  const cancel = new AbortController();
  await using stub = await openStub(() => cancel.abort(new RolloutError('cancelled', 'by the caller')));
  await using opened = await openTool({ url: stub.url });
  await assert.rejects(read(opened.tool, undefined, { signal: cancel.signal }), /by the caller/);
});

test('a huge reply keeps its beginning and its end, and an endless one is left', async () => {
  await using stub = await openStub((_, response) => response.end(`first\n${'line of text\n'.repeat(100_000)}last`));
  await using opened = await openTool({ url: stub.url });
  const text = await read(opened.tool);
  assert.ok(text.length < 34_000, `${text.length}`);
  assert.ok(text.startsWith('first\nline of text'));
  assert.match(text, /\[\.\.\. \d+ (?:bytes|characters) left out/);
  assert.ok(text.endsWith('line of text\nlast'));
  await using endless = await openStub((_, response) => {
    const chunk = Buffer.alloc(1 << 20, 'x');
    const more = () => void (response.destroyed || response.write(chunk, more));
    more();
  });
  await using flooded = await openTool({ url: endless.url });
  assert.match(await read(flooded.tool), /the reply is longer than 33554432 bytes: the rest was not read\]$/);
});

test('a reply that is not text is named instead of shown', async () => {
  await using stub = await openStub((_, response) => response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.alloc(10)));
  await using opened = await openTool({ url: stub.url });
  assert.equal(await read(opened.tool), '[image/png, 10 bytes, which cannot be shown]');
});
