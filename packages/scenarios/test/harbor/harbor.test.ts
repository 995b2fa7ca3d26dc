// The harbor scenario with real images and sandboxes: the tasks of examples/harbor, and what happens to checks that do not report.

import assert from 'node:assert/strict';
import { appendFile, cp } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { probeApptainer } from '@millrace/sandbox';
import { exampleFolder, HarborBed } from './bed.ts';

const probe = await probeApptainer();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

/** Commands of an agent, and its reward. */
const agents: Readonly<Record<string, readonly [command: string, reward: number][]>> = {
  greeting: [
    [`printf 'echo "hello $1"\\n' > greet.sh`, 1],
    ['true', 0],
  ],
  'log-report': [
    [`printf 'ERROR 6\\nINFO 42\\nWARN 12\\n' > /app/report.txt`, 1],
    [`printf 'ERROR 6\\nINFO 60\\nWARN 12\\n' > report.txt`, 0.5],
  ],
  'largest-file': [[`cat README data/large.bin && echo 'echo seven' > /app/largest.sh`, 0]],
  'unfinished-merge': [[`sed -i '/^[<=>]/d; /5432/d' settings.conf`, 1]],
};

describe('harbor', { skip, timeout: 600_000 }, () => {
  let bed: HarborBed;
  before(async () => {
    bed = await HarborBed.open();
  });
  after(async () => await bed?.[Symbol.asyncDispose]());

  for (const [name, cases] of Object.entries(agents)) {
    test(`examples/harbor/${name}: its solution has the whole reward, an untouched environment none, and agents what they earn`, async () => {
      const folder = join(exampleFolder, name);
      assert.deepEqual(await bed.trial(folder, 'gold'), { isRight: true, tests: {} });
      assert.equal((await bed.trial(folder, 'empty'))?.isRight, false);
      for (const [command, reward] of cases) assert.equal((await bed.judge(folder, [command])).reward, reward, command);
    });
  }

  test('reward.json comes before reward.txt, its other numbers are parts, and the range bounds the reward', async () => {
    const folder = await bed.write('both', {
      'tests/test.sh': `echo 0 > /logs/verifier/reward.txt; echo '{"reward": 7, "speed": 0.5}' > /logs/verifier/reward.json`,
    });
    const { reward, details } = await bed.judge(folder, []);
    assert.deepEqual([reward, details?.parts], [1, { speed: 0.5 }]);
  });

  test('a check that reports nothing, not even for the solution, is a failure of the verifier', async () => {
    const folder = await bed.write('silent', { 'tests/test.sh': 'echo broken >&2; exit 1' });
    const { code, blame, message } = await bed.fail(folder, ['echo 42 > answer']);
    assert.deepEqual([code, blame], ['evaluate-failed', 'verifier']);
    assert.match(message, /neither reward\.json nor reward\.txt.*broken/s);
  });

  test('a check that reports nothing for this agent alone is the lowest reward', async () => {
    const folder = await bed.write('strict', { 'tests/test.sh': 'set -e\ngrep -qx 42 /app/answer\necho 1 > /logs/verifier/reward.txt' });
    assert.equal((await bed.judge(folder, ['echo 42 > answer'])).reward, 1);
    const { reward, details } = await bed.judge(folder, ['echo 41 > answer']);
    assert.equal(reward, 0);
    assert.match(String(details?.no_reward), /neither/);
  });

  test('a check that the agent made slow is the lowest reward, and one that is slow without it is at fault', async () => {
    const toml = '[verifier]\ntimeout_sec = 1\n';
    const script = 'echo 1 > /logs/verifier/reward.txt; [ ! -e slow ] || sleep 600';
    const slowed = await bed.write('slowed', { 'task.toml': toml, 'tests/test.sh': script });
    const { reward, details } = await bed.judge(slowed, ['touch slow']);
    assert.deepEqual([reward, details?.end], [0, 'timed out']);
    const slow = await bed.write('slow', { 'task.toml': toml, 'tests/test.sh': 'echo 1 > /logs/verifier/reward.txt; sleep 600' });
    await assert.rejects(bed.judge(slow, []), /and none for its own solution either: it timed out/);
  });

  test('a program of the agent runs during the check only if the task says so', async () => {
    const wait = 'for n in $(seq 200); do [ -e /app/beat ] && break; sleep 0.05; done';
    const report = '[ -e /app/beat ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt';
    const beat = 'setsid bash -c "while true; do [ -d /tests ] && touch /app/beat; sleep 0.05; done" > /dev/null 2>&1 &';
    const stopped = await bed.write('stopped', { 'tests/test.sh': `sleep 0.5; ${report}` });
    assert.equal((await bed.judge(stopped, [beat])).reward, 0);
    const toml = '[metadata.millrace]\nkeep_programs = true\n';
    const kept = await bed.write('kept', { 'task.toml': toml, 'tests/test.sh': `${wait}; ${report}` });
    assert.equal((await bed.judge(kept, [beat])).reward, 1);
  });

  test('the digest of a task folder changes with any of its files', async () => {
    const folder = join(bed.folder, 'changing');
    await cp(join(exampleFolder, 'greeting'), folder, { recursive: true });
    const { digest } = await bed.read(folder);
    await appendFile(join(folder, 'tests/test.sh'), '\n');
    assert.notEqual((await bed.read(folder)).digest, digest);
  });
});
