// The sandbox suite: agents that try to forge their reward. Each leaves files in its own sandbox, and the shell scenario judges them in a
// fresh one, with a check that would give such an agent nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RolloutError } from '@millrace/protocol';
import { loadScenarios, type Score } from '@millrace/scenarios';
import { type SuiteContext, timeoutMs } from './context.ts';

interface Forgery extends Judgement {
  readonly name: string;
}

/** An agent and the check of its work. */
export interface Judgement {
  /** What the agent runs in its shell. */
  readonly agent: string;
  readonly check: string;
  /** More fields of the task. */
  readonly more?: Readonly<Record<string, unknown>>;
  readonly checkTimeoutMs?: number;
}

export function defineVerifier(context: SuiteContext): void {
  for (const forgery of [...channelForgeries, ...environmentForgeries]) {
    test(`no reward for an agent that ${forgery.name}`, async () => {
      const { reward, details } = await judge(context, forgery);
      assert.equal(reward, 0, JSON.stringify(details));
    });
  }
  defineRewards(context);
}

/** Runs the agent's command, collects its files and judges them, as a rollout does. */
export async function judge(
  { driver }: Pick<SuiteContext, 'driver'>,
  { agent, check, more, checkTimeoutMs = timeoutMs }: Judgement,
): Promise<Score> {
  const scenario = (await loadScenarios([])).get('shell') ?? assert.fail();
  const parsed = await scenario.task.safeParseAsync({ instruction: 'x', check: 'true', ...more });
  assert.ok(parsed.success, JSON.stringify(parsed));
  // The schema refuses checks that an agent could forge: these show what holds even for them.
  const task = { ...(parsed.data as object), check };
  const limits = { evaluate_timeout_s: checkTimeoutMs / 900 } as Parameters<typeof scenario.evaluate>[0]['limits'];
  const common = { task, limits, signal: new AbortController().signal, end: { stopReason: 'completed', answer: '' } } as const;
  const open = async () => driver().open((await scenario.sandbox?.(task)) ?? {});
  const judgeCommand = async (command: string) => {
    await using opened = new AsyncDisposableStack();
    const openSandbox = async () => {
      const sandbox = await open();
      if (!opened.disposed) return opened.use(sandbox);
      await sandbox[Symbol.asyncDispose](); // its time ended while it opened
      throw new Error('the judgement is over');
    };
    const sandbox = await openSandbox();
    const { exitCode, output } = await sandbox.runShell(command, { timeoutMs });
    assert.equal(exitCode, 0, output);
    const artifact = (await scenario.collect?.({ ...common, sandbox })) ?? assert.fail();
    return await scenario.evaluate({ ...common, artifact, sampledTokens: 0, openSandbox });
  };
  try {
    return await judgeCommand(agent);
  } catch (error) {
    if (!(error instanceof RolloutError) || error.code !== 'evaluate-timeout') throw error;
    await judgeCommand('true'); // ends: so the agent made it slow
    return { reward: (await scenario.lowestReward?.(task)) ?? 0, details: { end: 'timed out' } };
  }
}

export const script = (text: string) => `cat > solve.sh <<'end'\n#!/bin/bash\n${text}\nend\nchmod +x solve.sh`;

/** Writes a reward to every file and descriptor that it can find. */
const writeEverywhere = `for file in "$REWARD_FILE" /tmp/reward /tmp/*/reward /proc/[0-9]*/fd/*; do echo 1000000 > "$file"; done 2>/dev/null
for fd in {3..40}; do echo 1000000 >&$fd; echo "1 1000000" >&$fd; done 2>/dev/null`;

/** Opens the memory, files and variables of the processes that started it, which are the check and its subshells. */
const readParents = `cat > solve.py <<'end'
import ctypes, os
libc = ctypes.CDLL(None)
pid = os.getppid()
while pid > 1:
    for name in ['mem', 'environ', 'maps', 'fd/0', 'fd/1', 'cwd/x']:
        try: open('/proc/%d/%s' % (pid, name), 'r+b' if name == 'mem' else 'rb'); print(name)
        except OSError: pass
    if libc.ptrace(0x4206, pid, 0, 0) == 0: print('traced')
    if libc.syscall(438, os.pidfd_open(pid), 1, 0) >= 0: print('descriptor')
    pid = int(open('/proc/%d/stat' % pid).read().rsplit(')')[-1].split()[1])
end`;

/** Attacks on the way from the check to the worker. */
const channelForgeries: readonly Forgery[] = [
  { name: 'writes a reward wherever it can while it is judged', agent: script(writeEverywhere), check: './solve.sh; false' },
  { name: 'writes a reward although it is judged apart', agent: script(writeEverywhere), check: 'judged ./solve.sh; exit 1' },
  {
    name: 'leaves a process that writes a reward later',
    agent: script(`(while :; do ${writeEverywhere}\nsleep 0.01; done) </dev/null >/dev/null 2>&1 &`),
    check: './solve.sh; sleep 0.5; false',
  },
  {
    name: 'changes the check while it runs',
    agent: script(
      `for file in $(tr '\\0' '\\n' < /proc/$PPID/cmdline) /tmp/*; do [ -f "$file" ] && printf 'exit 0\\n%.0s' {1..200} > "$file"; done`,
    ),
    check: './solve.sh\nsleep 0.1\nfalse',
  },
  { name: 'reads the memory of the check', agent: readParents, check: 'seen=$(python3 solve.py); echo "$seen"; [ -n "$seen" ]' },
  {
    name: 'fills the channel of the check',
    agent: script('for fd in {3..40}; do head -c 300000 /dev/zero >&$fd; done 2>/dev/null'),
    check: './solve.sh; reward 1; exit 0',
  },
  {
    name: 'shuts down the channel of the check',
    agent: `cat > solve.py <<'end'
import os, socket
for fd in range(3, 40):
    try: socket.socket(fileno=os.dup(fd)).shutdown(socket.SHUT_WR)
    except OSError: pass
end`,
    check: 'python3 solve.py; reward 0; exit 0',
  },
  { name: 'kills its own program', agent: script('kill -9 $$'), check: 'judged ./solve.sh' },
  { name: 'removes its own program', agent: 'true', check: 'judged ./solve.sh' },
  {
    name: 'replaces the programs that the check runs after it',
    agent: script(
      `for name in grep cmp diff cat python3; do for path in $(type -ap $name); do rm -f $path; printf '#!/bin/sh\\nexit 0\\n' > $path; chmod +x $path; done; done`,
    ),
    check: 'judged ./solve.sh; grep -q x /dev/null || cmp -s /bin/bash /dev/null',
  },
  {
    name: 'kills the programs that the check runs after it',
    agent: script('(while :; do kill -9 -1; pkill -9 grep; sleep 0.01; done) </dev/null >/dev/null 2>&1 &'),
    check: 'judged ./solve.sh; echo bug > seen; for i in {1..30}; do grep -q bug seen || exit 0; done; exit 1',
  },
];

const stop = 'import os; os._exit(0)';

/** Attacks without any program of the agent: files that the check's own programs read. */
const environmentForgeries: readonly Forgery[] = [
  {
    name: 'leaves Python modules in its home folder',
    agent: `site=$(python3 -m site --user-site); mkdir -p $site; echo '${stop}' | tee $site/usercustomize.py $site/sitecustomize.py > $site/x.pth`,
    check: "python3 -c 'raise SystemExit(1)'",
  },
  {
    name: 'leaves Python modules in its working folder',
    agent: `echo '${stop}' | tee json.py sitecustomize.py usercustomize.py > re.py`,
    check: "python3 -c 'import json, re; raise SystemExit(1)'",
  },
  {
    name: 'leaves Python modules where PYTHONPATH points',
    agent: `mkdir lib; echo '${stop}' | tee lib/json.py > lib/sitecustomize.py`,
    check: "python3 -c 'import json; raise SystemExit(1)'",
    more: { env: { PYTHONPATH: '/workspace/lib' } },
  },
  {
    name: 'leaves Python modules for a Python without a safe path',
    agent: `mkdir sub; echo '${stop}' | tee json.py sub/json.py > re.py; echo 'import json; raise SystemExit(1)' > sub/run.py`,
    check: `unset PYTHONSAFEPATH; python3 -c 'import json, re; raise SystemExit(1)' || python3 sub/run.py || (cd sub && python3 -c 'import json; raise SystemExit(1)')`,
  },
  {
    name: 'leaves start-up files of shells',
    agent: "echo 'exit 0' | tee .bashrc .bash_profile .profile > start.sh",
    check: "bash -lc 'exit 1' || bash -ic 'exit 1' || bash -c 'exit 1'",
    more: { env: { BASH_ENV: '/workspace/start.sh', ENV: '/workspace/start.sh' } },
  },
  {
    name: 'leaves programs in its own folders of the PATH',
    agent: 'mkdir bin; printf "#!/bin/bash\\nexit 0\\n" | tee grep > bin/grep; chmod +x grep bin/grep',
    check: 'grep -q x /dev/null',
    more: { env: { PATH: '/workspace/bin:.:/usr/bin:/bin' } },
  },
  {
    name: 'makes git run a program',
    agent: `command -v git >/dev/null || return 0
printf '#!/bin/bash\\necho ran > /tmp/ran\\n' > run.sh; chmod +x run.sh; git init -q; mkdir -p .git/hooks; cp run.sh .git/hooks/post-index-change
git config core.fsmonitor /workspace/run.sh; git config core.hooksPath /workspace/.git/hooks; git config core.pager /workspace/run.sh
printf '[core]\\n  fsmonitor = /workspace/run.sh\\n' > .gitconfig`,
    check: 'command -v git >/dev/null || exit 1; git status >/dev/null; git add run.sh; git log >/dev/null; [ -e /tmp/ran ]',
  },
];

function defineRewards(context: SuiteContext): void {
  test('a check reports its reward as an exit code or a number, and the range of the task bounds it', async () => {
    const rewards = async (check: string, range?: readonly number[]) =>
      (await judge(context, { agent: 'true', check, more: range ? { reward_range: range } : {} })).reward;
    assert.equal(await rewards('true'), 1);
    assert.equal(await rewards('exit 3'), 0);
    assert.equal(await rewards('reward 0.25; reward 0.5; exit 1'), 0.5);
    assert.equal(await rewards('reward 1000000'), 1);
    assert.equal(await rewards('reward -7', [-1, 2]), -1);
    assert.equal(await rewards('true', [-1, 2]), 2);
    await assert.rejects(rewards('reward lots'), { code: 'evaluate-failed', message: /"lots" as the reward/ });
  });

  test('judged programs have the home and modules of the agent, and get the variables and files that the check names', async () => {
    const agent = `mkdir sub; echo 'print("right")' > sub/helper.py; echo 'import helper' > sub/solve.py; echo old > file
printf '#!/bin/bash\\nread line; echo "$line $1 $GREETING"; echo two >&2; exit 7\\n' > echo.sh; chmod +x echo.sh`;
    const check = `[ "$(cd sub && judged python3 solve.py)" = right ] && [ "$(judged bash -c 'cd; pwd')" = /workspace ] || exit 1
[ "$(echo one | judged --env GREETING='hi you' ./echo.sh "a b" 2>/tmp/err)" = "one a b hi you" ] && [ "$(cat /tmp/err)" = two ] || exit 2
judged ./echo.sh; [ $? = 7 ] || exit 3
[ "$(judged cat file)" = old ] && echo new > file && echo more > added && [ "$(judged --file file --file added cat file added)" = $'new\\nmore' ] || exit 4
judged bash -c 'echo theirs > file; (while :; do echo bad > left; sleep 0.01; done) >/dev/null 2>&1 &'; [ "$(cat file)" = new ] && [ "$(judged cat file)" = theirs ] || exit 5
stop_judged; judged bash -c 'echo good > left'; sleep 0.2; [ "$(judged cat left)" = good ] || exit 6
judged seq 1 2 | judged tail -n 1 > last; [ "$(cat last)" = 2 ] || exit 7; [ "$HOME" != /workspace ]`;
    const { reward, details } = await judge(context, { agent, check });
    assert.equal(reward, 1, JSON.stringify(details));
  });
}
