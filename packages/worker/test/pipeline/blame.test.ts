// The blame audit: for every failure code, an agent that tries to cause it, and the blame, the retries and the reward that follow. The
// table is complete: a new code without an entry does not compile.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ErrorCode, errorCodes, errorTable, RolloutError } from '@millrace/protocol';
import { probeBubblewrap, type Sandbox } from '@millrace/sandbox';
import { defineTool, type Scenario } from '@millrace/scenarios';
import { renderCall } from '@millrace/testkit/plain';
import { z } from 'zod';
import { type BedOptions, bash, finish, says, shell, WorkerBed } from './worker-bed.ts';

const probe = await probeBubblewrap();
const skip = probe.ok ? false : `${probe.reason}; try: ${probe.remedy}`;

/** How a rollout ends: its reward, the code of its last failure, and how many attempts it took. */
type End = readonly [reward: number | null, code: ErrorCode | undefined, attempts: number];

interface Attempted {
  readonly turns: readonly string[];
  /** Fields of the submission; by default a shell task whose check gives 0. */
  readonly submission?: Parameters<WorkerBed['submit']>[0];
  readonly bed?: Omit<BedOptions, 'policy'>;
  readonly end: End;
  /** On a busy machine the limit of the stage may be the first that passes. */
  readonly lateCode?: ErrorCode;
}

const zero: End = [0, undefined, 1];

/** A scenario that uses the sandbox as its author wrote it. */
const own = (parts: Partial<Scenario>): Scenario => ({
  name: 'own',
  task: z.unknown(),
  sandbox: () => ({}),
  init: () => ({ messages: [{ role: 'user', content: 'go' }], tools: ['bash', 'finish'] }),
  evaluate: () => ({ reward: 1 }),
  ...parts,
});
const ownTask = { id: 'r1', scenario: 'own', task: {} };
const scenarios = (parts: Partial<Scenario>) => ({ submission: ownTask, bed: { scenarios: [own(parts)] } });

const small = { sandbox: () => ({ limits: { diskMiB: 16, memoryMiB: 384, processes: 64 } }) };

const readTool = defineTool({
  name: 'read_notes',
  description: 'Reads the notes.',
  parameters: z.object({}),
  run: async (_, { sandbox, signal }) => (await sandbox.readFile('notes', { maxBytes: 1000, signal })).toString(),
});

/** Codes that no agent can reach: they are replies to requests, or come from what happens outside of a rollout's sandbox. */
const outOfReach = 'out of reach' as const;

const audit: Record<ErrorCode, readonly Attempted[] | typeof outOfReach> = {
  'bad-request': outOfReach,
  'unknown-scenario': outOfReach,
  'task-invalid': outOfReach,
  unauthorized: outOfReach,
  forbidden: outOfReach,
  gone: outOfReach,
  'gateway-abandoned': outOfReach,
  'store-full': outOfReach,
  'trajectory-missing': outOfReach,
  'trajectory-corrupt': outOfReach,
  'scenario-died': outOfReach, // the process of a scenario in Python is outside the sandbox
  'not-found': [
    {
      turns: [finish()],
      ...scenarios({ collect: ({ sandbox }) => sandbox.readFile('answer', { maxBytes: 10 }) }),
      end: [0, 'policy-failed', 1],
    },
    {
      turns: [finish()],
      ...scenarios({
        evaluate: async ({ openSandbox }) => ({ reward: (await (await openSandbox()).readFile('out', { maxBytes: 10 })).length }),
      }),
      end: [0, 'policy-failed', 1],
    },
    {
      turns: [renderCall('read_notes', {})],
      ...scenarios({ init: () => ({ messages: [{ role: 'user', content: 'go' }], tools: [readTool] }) }),
      end: [0, 'policy-failed', 1],
    },
  ],
  'method-not-allowed': outOfReach,
  'not-acceptable': outOfReach,
  'request-timeout': outOfReach,
  conflict: outOfReach,
  'body-too-large': outOfReach,
  'unsupported-media-type': outOfReach,
  'too-busy': outOfReach,
  'not-running': outOfReach,
  'wait-timeout': outOfReach,
  internal: [{ turns: [bash("printf '\\0\\xff\\xed\\xa0\\x80'"), finish('\u0000\ud800')], end: zero }],
  unreachable: outOfReach,
  cancelled: outOfReach,
  'sandbox-start-failed': [{ turns: [bash('rm -rf /workspace/* /tmp/*; kill -9 -1'), finish()], end: zero }],
  'sandbox-died': [{ turns: [bash('kill -9 1; kill -SEGV 1; kill -TERM -1'), finish()], end: zero }],
  'sandbox-killed': [
    {
      turns: [bash('for i in {1..5000}; do for signal in {34..64}; do kill -$signal 1; done; done'), finish()],
      bed: { driver: (real) => ({ ...real, open: async (spec, options) => failing(await real.open(spec, options), 'sandbox-killed') }) },
      end: [0, 'sandbox-killed', 1],
    },
  ],
  'sandbox-limit': [
    {
      turns: [bash('true'), finish()],
      ...scenarios({ ...small, collect: ({ sandbox }) => sandbox.writeFile('more', Buffer.alloc(20 << 20)).then(() => Buffer.alloc(0)) }),
      end: [0, 'sandbox-limit', 1],
    },
    // A set-up that reaches a limit is not the agent's.
    {
      turns: [finish()],
      ...scenarios({
        ...small,
        init: async ({ sandbox }) => {
          await sandbox.writeFile('more', Buffer.alloc(20 << 20));
          return { messages: [], tools: [] };
        },
      }),
      end: [null, 'init-failed', 1],
    },
  ],
  'sandbox-refused': [
    {
      turns: [renderCall('str_replace_editor', { command: 'create', path: '/workspace/a\u0000b', file_text: 'x' }), finish()],
      submission: shell('r1', { check: 'false', tools: ['str_replace_editor', 'finish'] }),
      end: zero,
    },
    {
      turns: [bash('mkdir -p answer'), finish()],
      ...scenarios({ collect: ({ sandbox }) => sandbox.writeFile('answer', 'x').then(() => Buffer.alloc(0)) }),
      end: [0, 'policy-failed', 1],
    },
  ],
  'sandbox-failed': outOfReach,
  'task-failed': outOfReach,
  'policy-failed': [
    {
      turns: [bash('printf "#!/bin/sh\\nsleep 100\\n" > slow; chmod +x slow'), finish()],
      submission: { ...ownTask, limits: { evaluate_timeout_s: 1 } },
      bed: {
        scenarios: [
          own({ collect: ({ sandbox, signal }) => sandbox.exec(['./slow'], { timeoutMs: 60_000, signal }).then(({ stdout }) => stdout) }),
        ],
      },
      end: [0, 'policy-failed', 1],
    },
  ],
  'init-failed': outOfReach,
  'init-timeout': outOfReach,
  'run-failed': [{ turns: [bash('mkdir a; chmod 0 a; mkfifo b'), finish()], end: zero }],
  'tool-failed': [{ turns: [renderCall('bash', { command: 7 }), bash('exit 3'), finish()], end: zero }],
  'tool-unavailable': outOfReach, // whatever a reached server answers is a result that the agent reads
  'backend-failed': outOfReach,
  'backend-refused': outOfReach,
  'backend-bad-reply': outOfReach,
  'evaluate-disturbed': outOfReach,
  'evaluate-failed': [
    {
      turns: [bash('echo "kill -9 \\$PPID" > solve.sh'), finish()],
      submission: shell('r1', { check: 'bash solve.sh; true # millrace: allow runs-agent-file it kills the check' }),
      end: zero,
    },
    { turns: [finish()], submission: shell('r1', { check: 'judged ./solve.sh # millrace: allow judged-status there is none' }), end: zero },
  ],
  'evaluate-timeout': [
    {
      turns: [bash('echo "sleep 100" > solve.sh'), finish()],
      submission: shell('r1', { check: 'judged bash solve.sh; true' }, { limits: { evaluate_timeout_s: 8 } }),
      end: zero,
      lateCode: 'policy-failed',
    },
    {
      turns: [finish()],
      submission: { ...ownTask, limits: { evaluate_timeout_s: 1 } },
      bed: {
        scenarios: [
          own({
            evaluate: async ({ openSandbox, signal }) => {
              const { exitCode } = await (await openSandbox()).exec(['sleep', '100'], { timeoutMs: 60_000, signal });
              return { reward: exitCode ?? 1 };
            },
          }),
        ],
      },
      end: [null, 'evaluate-timeout', 1],
    },
    // What the agent left makes it slow: it ends for an agent that did nothing.
    {
      turns: [bash('echo 100 > seconds'), finish()],
      submission: { ...ownTask, limits: { evaluate_timeout_s: 2 } },
      bed: {
        scenarios: [
          own({
            init: async ({ sandbox }) => {
              await sandbox.writeFile('seconds', '0');
              return { messages: [{ role: 'user', content: 'go' }], tools: ['bash', 'finish'] };
            },
            collect: ({ sandbox }) => sandbox.readFile('seconds', { maxBytes: 10 }),
            evaluate: async ({ artifact, openSandbox, signal }) => {
              const argv = ['sleep', artifact.toString().trim()];
              return { reward: (await (await openSandbox()).exec(argv, { timeoutMs: 60_000, signal })).exitCode ?? 1 };
            },
          }),
        ],
      },
      end: [0, 'policy-failed', 1],
    },
    // Without a program in a sandbox, the verifier itself is slow.
    {
      turns: [finish()],
      submission: { ...ownTask, limits: { evaluate_timeout_s: 0.3 } },
      bed: { scenarios: [own({ evaluate: () => new Promise(() => {}) })] },
      end: [null, 'evaluate-timeout', 1],
    },
  ],
  'artifact-too-large': [{ turns: [bash('head -c 40M /dev/zero > big'), finish()], end: [0, 'artifact-too-large', 1] }],
  'too-stale': outOfReach,
  'worker-lost': outOfReach,
};

/** A sandbox that its agent ended with this code, as the drivers report it. */
function failing(sandbox: Sandbox, code: ErrorCode): Sandbox {
  return { ...sandbox, runShell: () => Promise.reject(new RolloutError(code, 'the agent did it')) };
}

describe('the blame audit', { skip, timeout: 300_000 }, () => {
  for (const tried of errorCodes) {
    const attempts = audit[tried];
    if (attempts === outOfReach) continue;
    for (const [index, { turns, submission = shell('r1', { check: 'false' }), bed: options, end, lateCode }] of attempts.entries()) {
      test(`an agent that tries to cause ${tried} (${index + 1}) ends with ${end[0] === null ? 'no reward' : `the reward ${end[0]}`}`, async () => {
        await using bed = await WorkerBed.open({ ...options, policy: says(...turns) });
        await bed.startWorker();
        const { result, failure, attempt, state } = await bed.ended(await bed.submit(submission));
        const isLate = lateCode !== undefined && failure?.code === lateCode;
        assert.deepEqual([result?.reward, isLate ? end[1] : failure?.code, attempt], end, JSON.stringify(failure ?? result?.score));
        assert.equal(state, end[0] === null ? 'failed' : 'done');
      });
    }
  }

  test('no failure that is blamed on the policy is retried', () => {
    const codes = errorCodes.filter((code) => errorTable[code].blame === 'policy' && errorTable[code].retryable);
    assert.deepEqual(codes, []);
  });
});
