// The sandbox suite: a service of the worker on the loopback of a sandbox without network, and what hostile programs make of it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { Duplex } from 'node:stream';
import { test } from 'node:test';
import type { ListenOptions, Sandbox, SandboxDriver, SandboxListener } from '@millrace/sandbox';

const timeoutMs = 60_000;
const mib = 1 << 20;

interface LoopbackBed {
  sandbox(): Sandbox;
  driver(): SandboxDriver;
}

interface HttpService extends SandboxListener {
  readonly connections: readonly Duplex[];
}

async function serve(sandbox: Sandbox, answer: RequestListener, options: Partial<ListenOptions> = {}): Promise<HttpService> {
  const server = createServer(answer);
  const connections: Duplex[] = [];
  const listener = await sandbox.listen({
    ...options,
    onConnection(connection) {
      connections.push(connection);
      server.emit('connection', connection);
    },
  });
  return { ...listener, connections };
}

/** Replies with the method, the path, and how many bytes came. */
const echo: RequestListener = async (request, reply) => {
  let bytes = 0;
  for await (const chunk of request) bytes += (chunk as Buffer).length;
  reply.end(`${request.method} ${request.url} ${bytes}\n`);
};

async function runPython(sandbox: Sandbox, program: string): Promise<string> {
  const result = await sandbox.exec(['python3', '-c', program], { timeoutMs, capBytes: mib });
  assert.equal(result.exitCode, 0, result.stderr.toString());
  return result.stdout.toString();
}

/** `once` would throw the stream's error. */
const closeOf = (stream: Duplex) => (stream.closed ? Promise.resolve() : new Promise<void>((resolve) => stream.once('close', resolve)));

export function defineLoopback(bed: LoopbackBed): void {
  defineConversations(bed);
  defineFlow(bed);
  defineEnds(bed);
}

function defineConversations({ sandbox }: LoopbackBed): void {
  test('programs of a sandbox without network talk HTTP to a service of the worker, on their loopback only', async () => {
    await using service = await serve(sandbox(), echo);
    const { port } = service;
    const inBash = `exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'GET /bash HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3; exec 3>&-`;
    assert.match((await sandbox().runShell(inBash, { timeoutMs })).output, /GET \/bash 0/);
    const program = `import urllib.request as u; print(u.urlopen('http://127.0.0.1:${port}/python', data=bytes(100_000)).read())`;
    assert.match(await runPython(sandbox(), program), /POST \/python 100000/);
    const outside = await sandbox().runShell('exec 3<>/dev/tcp/10.0.0.1/80', { timeoutMs });
    assert.match(outside.output, /unreachable/);
  });

  test('a port can be chosen, is refused while it is in use, and is free again after closing', async () => {
    const first = await serve(sandbox(), echo);
    const again = serve(sandbox(), echo, { port: first.port });
    await assert.rejects(again, { code: 'sandbox-refused', message: /EADDRINUSE/ });
    await first[Symbol.asyncDispose]();
    await first[Symbol.asyncDispose]();
    await using second = await serve(sandbox(), echo, { port: first.port });
    assert.equal(second.port, first.port);
    const program = `import urllib.request as u; print(u.urlopen('http://127.0.0.1:${first.port}/').read())`;
    assert.match(await runPython(sandbox(), program), /GET \/ 0/);
  });

  test('50 programs are connected at once, each with its own conversation', async () => {
    const waiting: (() => void)[] = [];
    await using service = await serve(sandbox(), (request, reply) => {
      waiting.push(() => reply.end(request.url));
      if (waiting.length === 50) for (const answer of waiting) answer();
    });
    const program = `
import concurrent.futures as f, urllib.request as u
ask = lambda n: u.urlopen('http://127.0.0.1:${service.port}/%d' % n).read().decode()
with f.ThreadPoolExecutor(50) as pool: print(list(pool.map(ask, range(50))) == ['/%d' % n for n in range(50)])`;
    assert.equal(await runPython(sandbox(), program), 'True\n');
    assert.equal(service.connections.length, 50);
  });
}

function defineFlow({ sandbox, driver }: LoopbackBed): void {
  test('50 MB go both ways past a slow reader, unchanged, while the shell answers', async () => {
    await using service = await serve(sandbox(), (request, reply) => void request.pipe(reply));
    const program = `
import hashlib, os, socket, threading, time
one = socket.create_connection(('127.0.0.1', ${service.port}))
sent, got, total = hashlib.sha256(), hashlib.sha256(), 50_000_000
one.sendall(b'POST / HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: %d\\r\\nConnection: close\\r\\n\\r\\n' % total)
def send():
    for _ in range(50):
        piece = os.urandom(1_000_000); sent.update(piece); one.sendall(piece)
thread = threading.Thread(target=send); thread.start()
reply = one.makefile('rb'); chunked = False
while (line := reply.readline()) != b'\\r\\n': chunked = chunked or b'chunked' in line
while (size := int(reply.readline(), 16)) > 0:
    got.update(reply.read(size)); reply.readline()
    if size > 60_000: time.sleep(0.001)
thread.join(); print(chunked, sent.digest() == got.digest())`;
    let isOver = false;
    const transfer = runPython(sandbox(), program).finally(() => {
      isOver = true;
    });
    let answers = 0;
    while (!isOver) {
      assert.equal((await sandbox().runShell('echo $((6 * 7))', { timeoutMs })).output, '42\n');
      answers += 1;
    }
    assert.equal(await transfer, 'True True\n');
    assert.ok(answers > 1, `${answers} answers`);
  });

  test('a side that does not read stops the other one, and fills no memory', async () => {
    const connected = Promise.withResolvers<Duplex>();
    await using listener = await sandbox().listen({ onConnection: (connection) => connected.resolve(connection) });
    const connect = `import socket, sys; one = socket.create_connection(('127.0.0.1', ${listener.port}))`;
    const flood = `${connect}; one.setblocking(False); count = 0
import select
while select.select([], [one], [], 1)[1]: count += one.send(bytes(65536))
print(count, flush=True); sys.stdin.read()`;
    await using program = await sandbox().openProgram(['python3', '-c', flood]);
    const { data } = await program.read({ timeoutMs });
    const connection = await connected.promise;
    const sent = Number(data.toString());
    assert.ok(sent > 0 && sent < 16 * mib, `${sent} bytes were taken`); // most of it by the kernel's buffers
    assert.ok(connection.readableLength <= 256 * 1024, `${connection.readableLength} bytes are held`);
    let taken = 0;
    const first = Promise.withResolvers<void>();
    for (let count = 0; count < 512; count += 1) {
      connection.write(Buffer.alloc(65_536), () => {
        taken += 65_536;
        first.resolve();
      });
    }
    await first.promise;
    for (let count = 0; count < 20; count += 1)
      assert.equal((await sandbox().runShell('echo still here', { timeoutMs })).output, 'still here\n');
    assert.ok(taken < 16 * mib, `${taken} bytes were taken`);
  });

  test('a flood of connections is served one after the other, and no call waits for it', async () => {
    await using own = await driver().open({});
    let open = 0;
    let most = 0;
    let total = 0;
    await using listener = await own.listen({
      maxConnections: 8,
      onConnection(connection) {
        open += 1;
        total += 1;
        most = Math.max(most, open);
        connection.on('close', () => {
          open -= 1;
        });
        connection.resume();
        connection.on('end', () => connection.end());
      },
    });
    const flood = `import os, socket
os.fork()
while True:
    try:
        one = socket.socket(); one.setblocking(False); one.connect_ex(('127.0.0.1', ${listener.port}))
    except OSError: pass
    one.close()`;
    await using _program = await own.openProgram(['python3', '-c', flood]);
    while (total < 100) assert.equal((await own.exec(['echo', 'here'], { timeoutMs })).stdout.toString(), 'here\n');
    assert.ok(most <= 8, `${most} at once`);
  });

  test('connections that a program never uses leave room for calls, and for others once they are closed', async () => {
    await using service = await serve(sandbox(), echo, { maxConnections: 16 });
    const hold = `import socket, sys
held = [socket.create_connection(('127.0.0.1', ${service.port})) for _ in range(100)]
print('held', flush=True); sys.stdin.read()`;
    const program = await sandbox().openProgram(['python3', '-c', hold]);
    assert.equal((await program.read({ timeoutMs })).data.toString(), 'held\n');
    assert.ok(service.connections.length <= 16, `${service.connections.length} connections`);
    assert.equal((await sandbox().runShell('echo free', { timeoutMs })).output, 'free\n');
    await program[Symbol.asyncDispose]();
    const ask = `import urllib.request as u; print(u.urlopen('http://127.0.0.1:${service.port}/after').read())`;
    assert.match(await runPython(sandbox(), ask), /GET \/after/);
  });
}

function defineEnds({ sandbox, driver }: LoopbackBed): void {
  test('each side can end its half: the other still sends, and both receive everything', async () => {
    const received = Promise.withResolvers<string>();
    await using listener = await sandbox().listen({
      async onConnection(connection) {
        let text = '';
        for await (const chunk of connection) text += String(chunk);
        connection.end(`after the end: ${text}`);
        received.resolve(text);
      },
    });
    const program = `import socket
one = socket.create_connection(('127.0.0.1', ${listener.port})); one.sendall(b'all'); one.shutdown(socket.SHUT_WR)
print(one.makefile().read())`;
    assert.equal(await runPython(sandbox(), program), 'after the end: all\n');
    assert.equal(await received.promise, 'all');
  });

  test('the worker sees a killed program and a reset, and a program sees that the worker gave up', async () => {
    const connections: Duplex[] = [];
    let opened = Promise.withResolvers<Duplex>();
    await using listener = await sandbox().listen({
      onConnection(connection) {
        connections.push(connection);
        opened.resolve(connection);
      },
    });
    const connect = `import socket, struct, sys, time; one = socket.create_connection(('127.0.0.1', ${listener.port}))`;
    const killed = await sandbox().openProgram(['python3', '-c', `${connect}; one.sendall(b'x'); time.sleep(1000)`]);
    const first = await opened.promise;
    await once(first, 'readable');
    await killed[Symbol.asyncDispose]();
    first.resume();
    await once(first, 'end');
    first.destroy();
    opened = Promise.withResolvers();
    await runPython(sandbox(), `${connect}; one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); one.close()`);
    const second = await opened.promise;
    await closeOf(second);
    assert.equal((second.errored as NodeJS.ErrnoException | null)?.code, 'ECONNRESET');
    opened = Promise.withResolvers();
    opened.promise.then((connection) => connection.destroy());
    const given = `${connect}
try: print(one.recv(1))
except ConnectionResetError: print('reset')`;
    assert.equal(await runPython(sandbox(), given), 'reset\n');
  });

  test('the end of a sandbox ends its connections, with the reason', async () => {
    const own = await driver().open({});
    const opened = Promise.withResolvers<Duplex>();
    const listener = await own.listen({ onConnection: (connection) => opened.resolve(connection) });
    await own.runShell(`exec 3<>/dev/tcp/127.0.0.1/${listener.port}`, { timeoutMs });
    const connection = await opened.promise;
    const closed = closeOf(connection);
    await own[Symbol.asyncDispose]();
    await closed;
    assert.match(String(connection.errored), /is closed/);
    await listener[Symbol.asyncDispose]();
    await assert.rejects(own.listen({ onConnection() {} }), { code: 'sandbox-died' });
  });
}
