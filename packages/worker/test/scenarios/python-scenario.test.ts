// Scenarios in Python: what their exceptions say, and what happens when their process dies, hangs or does many things at once.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Fields, silentLog } from '@millrace/base/log';
import { rolloutId } from '@millrace/protocol';
import { loadScenarios } from '@millrace/scenarios';
import { makeTempFolder, type Policy, renderCall, type TempFolder } from '@millrace/testkit/plain';
import { finish, says, WorkerBed } from '../pipeline/worker-bed.ts';

const found = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']);
const skip = found.status === 0 ? false : 'Python 3.9 or later is not installed';

const source = `
import ctypes, os, signal, threading, time
from dataclasses import dataclass
from typing import Optional
from millrace.scenario import Finish, Opening, Rollout, ScenarioError, Score, tool

name = "probe"
reward_range = (-1, 2)

@dataclass
class Task:
    do: str = ""
    sandbox: bool = False

def sandbox(task):
    return {} if task.sandbox else None

together = threading.Barrier(2, timeout=60)
stopped = __file__ + ".stopped"

@tool
def act(rollout: Rollout, what: str, times: Optional[int] = 1) -> str:
    """Acts."""
    if what == "die":
        print("about to die")
        os._exit(3)
    if what == "stop" and not os.path.exists(stopped):
        open(stopped, "w").close()
        os.kill(os.getpid(), signal.SIGSTOP)
    if what == "raise":
        raise KeyError(what)
    if what == "finish":
        return Finish("by the tool")
    rollout.state["acts"] = rollout.state.get("acts", 0) + times
    return what * times

def init(rollout):
    if rollout.task.do == "init":
        helper(rollout)
    if rollout.task.do == "meet":
        together.wait()
    return Opening(f"go {rollout.task.do}", tools=[act])

def helper(rollout):
    raise ValueError("no init today")

async def collect(rollout):
    return rollout.sandbox.read_file("answer.txt")

def end(how):
    if how == "crash":
        print("about to crash")
        os._exit(4)
    if how == "freeze":
        ctypes.PyDLL(None).sleep(600)  # with the interpreter's lock
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)

def evaluate(rollout):
    do = rollout.task.do
    end(rollout.end.answer)
    if do == "broken":
        end("crash")
    if do == "unlucky":
        with open(__file__ + ".unlucky", "a+") as tries:
            tries.write("x")
            if tries.tell() <= 2:
                end("kill")
    if do == "blame":
        raise ScenarioError("policy", "cannot be judged")
    if do == "forever":
        while True:
            time.sleep(0.01)
    if do == "nonsense":
        return "good"
    if rollout.task.sandbox:
        fresh = rollout.open_sandbox()
        fresh.write_file("a/b.txt", rollout.artifact)
        shown = fresh.exec(["cat", "a/b.txt"], timeout_s=30)
        return Score(2, {"shown": shown.stdout, "pid": os.getpid()})
    return Score(rollout.state.get("acts", 0), {"pid": os.getpid(), "answer": rollout.end.answer})
`;

const act = (what: string, times?: number) => renderCall('act', { what, ...(times === undefined ? {} : { times }) });
const limits = { max_retries: 0 };
const probe = (id: string, task: Record<string, unknown> = {}, more: Record<string, unknown> = {}) => ({
  id,
  scenario: 'probe',
  task,
  limits: { ...limits, ...more },
});

describe('a scenario in Python', { skip }, () => {
  let folder: TempFolder;
  let file: string;
  before(async () => {
    folder = await makeTempFolder('py');
    file = join(folder.path, 'probe.py');
    await writeFile(file, source);
  });
  after(() => folder[Symbol.asyncDispose]());

  const line = (text: string) => source.split('\n').findIndex((one) => one.includes(text)) + 1;

  test('tools, the state of a rollout and the score go through the process; the agent ends with a tool', async () => {
    await using bed = await WorkerBed.open({ scenarioFiles: [file], policy: says(act('x', 2), act('y'), act('finish')) });
    await bed.startWorker();
    const ended = await bed.ended(await bed.submit(probe('r1')));
    assert.deepEqual([ended.state, ended.result?.reward, ended.result?.score?.answer], ['done', 3, 'by the tool']);
    const { segments } = (await bed.store.trajectory(ended.id)) ?? assert.fail();
    const said = segments.flatMap(({ messages }) => messages).filter(({ role }) => role === 'tool');
    assert.deepEqual(
      said.map(({ content }) => content),
      ['xx', 'y'],
    );
  });

  test('the sandbox is reached from Python: the agent’s in collect, a fresh one in evaluate', async () => {
    const policy = says('done');
    await using bed = await WorkerBed.open({ scenarioFiles: [file], policy });
    await bed.startWorker();
    const missing = await bed.ended(await bed.submit(probe('none', { sandbox: true })));
    assert.deepEqual([missing.state, missing.result?.reward, missing.failure?.blame], ['done', -1, 'policy']);
    const own = source
      .replace('def helper', 'def unused')
      .replace('return Opening', 'rollout.sandbox.write_file("answer.txt", "42")\n    return Opening');
    const writing = join(folder.path, 'writing.py');
    await writeFile(writing, own.replace('name = "probe"', 'name = "writing"'));
    await using second = await WorkerBed.open({ scenarioFiles: [writing], policy });
    await second.startWorker();
    const ended = await second.ended(await second.submit({ ...probe('r1', { sandbox: true }), scenario: 'writing' }));
    assert.deepEqual([ended.result?.reward, ended.result?.score?.shown], [2, '42']);
  });

  test('an exception names the file, the line and the function, and the log has the stack of Python', async () => {
    const logged: Fields[] = [];
    const log = { ...silentLog, warn: (_event: string, fields: Fields = {}) => logged.push(fields) };
    const policy = says(act('raise'));
    await using bed = await WorkerBed.open({ scenarioFiles: [file], log, policy });
    await bed.startWorker();
    const ids = await bed.submitAll(probe('init', { do: 'init' }), probe('tool'));
    const failures = await Promise.all(ids.map(async (id) => (await bed.ended(id)).failure));
    assert.deepEqual(
      failures.map((failure) => [failure?.code, failure?.message.split(/(?=scenario|the tool)/).at(-1)]),
      [
        ['init-failed', `scenario probe, init: ValueError: no init today (${file}:${line('no init today')})`],
        // Only the agent's argument breaks the tool.
        ['policy-failed', `the tool act: KeyError: 'raise' (${file}:${line('raise KeyError')})`],
      ],
    );
    const stack = String(logged.find(({ rolloutId }) => rolloutId === 'init')?.stack);
    assert.match(stack, /^Traceback[\s\S]*in init\n[\s\S]*in helper\n[\s\S]*ValueError: no init today/);
  });

  test('a verdict that is none, and a blame, are attributed as in TypeScript', async () => {
    await using bed = await WorkerBed.open({ scenarioFiles: [file], policy: says('done') });
    await bed.startWorker();
    const [blame, nonsense] = await bed.submitAll(probe('blame', { do: 'blame' }), probe('nonsense', { do: 'nonsense' }));
    const blamed = await bed.ended(blame);
    assert.deepEqual([blamed.state, blamed.failure?.code, blamed.result?.reward], ['done', 'policy-failed', -1]);
    const { failure, result } = await bed.ended(nonsense);
    assert.deepEqual([failure?.code, result?.reward ?? null], ['evaluate-failed', null]);
    assert.match(failure?.message ?? '', /evaluate must return a number, Score\(reward, details\)/);
  });

  test('two rollouts are in their functions at the same time', async () => {
    await using bed = await WorkerBed.open({ scenarioFiles: [file], policy: says('done') });
    await bed.startWorker();
    const ids = await bed.submitAll(probe('a', { do: 'meet' }), probe('b', { do: 'meet' }));
    for (const id of ids) assert.equal((await bed.ended(id)).state, 'done');
  });

  test('who ends the process has the lowest reward, after a try in one of its own; who was there too, or unlucky, has a true one', async () => {
    const policy: Policy = ({ opening }) => {
      const [, does = ''] = /go (\w+)/.exec(opening()) ?? [];
      return { text: does === 'die' ? act('die') : does };
    };
    await using bed = await WorkerBed.open({ scenarioFiles: [file], policy, python: { hungMs: 2000 } });
    await bed.startWorker();
    const guilty = ['die', 'crash', 'freeze', 'kill'];
    const others = ['unlucky', 'broken', 'a', 'b', 'c', 'd'];
    await bed.submitAll(...[...guilty, ...others].map((id) => probe(id, { do: id })));
    const ends = await Promise.all([...guilty, ...others].map((id) => bed.ended(rolloutId.parse(id))));
    const seen = ends.map(({ id, state, failure, result }) => [id, state, result?.reward ?? null, failure?.code]);
    assert.deepEqual(seen, [
      ...guilty.map((id) => [id, 'done', -1, 'policy-failed']),
      ['unlucky', 'done', 0, undefined],
      ['broken', 'failed', null, 'evaluate-failed'],
      ...['a', 'b', 'c', 'd'].map((id) => [id, 'done', 0, undefined]),
    ]);
    const messages = Object.fromEntries(ends.map(({ id, failure }) => [id, failure?.message]));
    assert.match(messages.die ?? '', /the tool act: .*died during tool: it ended with exit code 3; it printed last: about to die$/);
    assert.match(messages.crash ?? '', /judges an agent that did nothing: .*it ended with exit code 4; it printed last: about to crash/);
    assert.match(messages.freeze ?? '', /did not answer for 2 s and was killed/);
    assert.match(messages.kill ?? '', /it ended with SIGKILL/);
  });

  test('a process that does not answer is killed in time, and its rollout is retried', async () => {
    const policy: Policy = ({ turn }) => ({ text: turn === 0 ? act('stop') : finish() });
    await using bed = await WorkerBed.open({ scenarioFiles: [file], policy, python: { hungMs: 3000 } });
    await bed.startWorker();
    const ended = await bed.ended(await bed.submit(probe('hangs', {}, { max_retries: 1, max_turns: 2 })));
    assert.deepEqual([ended.state, ended.attempt], ['done', 2]);
  });

  test('a function that never returns ends with its time, and the process works on', async () => {
    await using bed = await WorkerBed.open({ scenarioFiles: [file], policy: says('done') });
    await bed.startWorker();
    const first = await bed.ended(await bed.submit(probe('before')));
    const forever = await bed.ended(await bed.submit(probe('forever', { do: 'forever' }, { evaluate_timeout_s: 1 })));
    assert.deepEqual([forever.failure?.code, forever.failure?.blame, forever.attempt], ['evaluate-timeout', 'verifier', 2]);
    const last = await bed.ended(await bed.submit(probe('after')));
    assert.equal(last.result?.score?.pid, first.result?.score?.pid);
  });

  const refused: [string, string, RegExp][] = [
    ['syntax.py', 'x = 1\ndef (:', /syntax\.py:2: syntax error: /],
    ['nameless.py', 'x = 1', /nameless\.py is not a scenario: it has no name: write name = "my-scenario"/],
    ['half.py', 'name = "half"\ndef init(rollout): pass', /half\.py is not a scenario: it has no function `evaluate\(rollout\)`/],
    ['taskless.py', 'name = "x"\ndef init(r): pass\ndef evaluate(r): pass', /it has no `Task`: a dataclass or a TypedDict/],
    ['raises.py', 'x = 1\nx.y', /raises\.py:2: the file raised while it was loaded: AttributeError: 'int' object has no attribute 'y'/],
    ['package.py', 'import left_pad_2', /package\.py:1: No module named 'left_pad_2'; install it .*\.venv\/bin\/pip install left_pad_2/],
    ['odd.py', 'name = "x"\nclass Task: pass\ndef init(r): pass\ndef evaluate(r): pass', /Task has the type .*JSON Schema cannot express/],
  ];
  for (const [name, text, message] of refused) {
    test(`${name} is refused with its line and what to do`, async () => {
      const path = join(folder.path, name);
      await writeFile(path, text);
      await assert.rejects(loadScenarios([path]), message);
    });
  }

  test('a task that does not match the class is refused with the name of the field', async () => {
    const { task } = (await loadScenarios([file])).get('probe') ?? assert.fail();
    const parsed = task.safeParse({ do: 1, other: 2 });
    assert.equal(parsed.success, false);
    assert.match(JSON.stringify(parsed.error), /\bdo\b.*\bother\b/);
    assert.equal(task.safeParse({ sandbox: true }).success, true);
  });
});
