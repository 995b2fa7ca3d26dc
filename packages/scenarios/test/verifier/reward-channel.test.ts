// Programs that a check in bash starts without `judged` inherit the channel of its reward. None gets a reward through it, and none gets away
// without the lowest one.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CheckBed } from './bed.ts';

let bed: CheckBed;
before(async () => {
  bed = await CheckBed.open();
});
after(() => bed[Symbol.asyncDispose]());

const find = `import fcntl, os, socket, stat, struct, sys, time
def channels():
    for fd in range(3, 256):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode): yield fd
        except OSError: pass
found = list(channels())
assert found
`;

/** Each is done to every socket that the program has. */
const attacks: Readonly<Record<string, string>> = {
  'writes a report without the secret': "os.write(fd, b'reward 1\\n')",
  'writes a report with every name of the secret': "os.write(fd, b'millrace_secret reward 1\\n$millrace_secret reward 1\\n')",
  'writes half a line before the report of the check': "os.write(fd, b'x' * 100)",
  'writes half a line and waits for the report of the check':
    "os.write(fd, b'x')\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(2)\n    os.write(fd, b' reward 1\\n')\n    os._exit(0)",
  'shuts the channel down': 'socket.socket(fileno=os.dup(fd)).shutdown(socket.SHUT_RDWR)',
  'shuts the channel down for writing': 'socket.socket(fileno=os.dup(fd)).shutdown(socket.SHUT_WR)',
  'reads what the check would be sent': 'fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)\ntry: os.read(fd, 1 << 16)\nexcept OSError: pass',
  'writes without end': "for _ in range(400): os.write(fd, b'y' * 65536)",
  'keeps the channel open': 'if os.fork() == 0:\n    os.setsid()\n    time.sleep(600)',
  'has the shell killed by a signal of the channel':
    'fcntl.fcntl(fd, fcntl.F_SETOWN, os.getppid())\nfcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | 0x2000)\nos.write(fd, b"x\\n")',
  'makes every write of the shell fail':
    "socket.socket(fileno=os.dup(fd)).setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack('ll', 0, 1))",
};

for (const [name, attack] of Object.entries(attacks)) {
  const body = attack.replaceAll('\n', '\n    ');
  const agent = `cat > attack.py <<'end'\n${find}for fd in found:\n    ${body}\nend`;
  test(`a program that ${name} forges no reward, and gets no more than the check says`, async () => {
    const failed = await bed.judge({ agent, check: 'python3 attack.py; exit 1' });
    assert.equal(failed.reward, 0, JSON.stringify(failed.details));
    const part = await bed.judge({ agent, check: 'python3 attack.py; reward 0.25' });
    assert.ok(part.reward === 0.25 || part.reward === 0, JSON.stringify(part));
  });
}

test('the channel is in reach of these programs, as they assume', async () => {
  const agent = `cat > attack.py <<'end'\n${find}end`;
  assert.equal(await bed.reward({ agent, check: 'python3 attack.py' }), 1);
});
