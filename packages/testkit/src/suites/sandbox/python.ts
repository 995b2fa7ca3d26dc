// The sandbox suite: IPython cells. For each thing that a cell does, what is returned and which state is kept.

import assert from 'node:assert/strict';
import { before, type TestContext, test } from 'node:test';
import type { PythonOptions, PythonResult } from '@millrace/sandbox';
import { type SuiteContext, timeoutMs } from './context.ts';

export function definePython({ sandbox, driver }: SuiteContext): void {
  let missing: string | undefined;
  before(async () => {
    const probe = await run('0');
    if (probe.end === 'missing') missing = probe.output;
  });
  const run = (code: string, options: Partial<PythonOptions> = {}): Promise<PythonResult> =>
    sandbox().runPython(code, { timeoutMs, ...options });
  const claim = (title: string, work: () => Promise<void>) =>
    test(title, (t: TestContext) => (missing === undefined ? work() : t.skip(missing)));
  const sees = async (code: string, output: string | RegExp, options: Partial<PythonOptions> = {}) => {
    const result = await run(code, options);
    const seen = `${result.output}\n[${result.end} after ${result.ms} ms: ${code}]`;
    if (typeof output === 'string') assert.equal(result.output, output, seen);
    else assert.match(result.output, output, seen);
    return result;
  };

  claim('variables stay from cell to cell, and the last value is shown', async () => {
    assert.deepEqual((await sees('kept = 6 * 7', '')).end, 'ok');
    await sees('kept', '42\n');
    await sees('kept;', '');
  });

  claim('output of a cell and of its programs stays in order', async () => {
    const code =
      'import sys, subprocess\nprint("a", end="")\nsys.stderr.write("b")\nprint("c")\n!echo d; echo e >/dev/stderr\nsubprocess.run(["echo", "f"]);';
    await sees(code, 'abc\nd\ne\nf\n');
  });

  claim('a traceback has no colours, and the process keeps running', async () => {
    const result = await sees('kept = 1\n1/0', /ZeroDivisionError: division by zero\n$/);
    assert.deepEqual([result.end, result.stateLost, result.output.includes('\x1b')], ['error', false, false]);
    assert.equal((await sees('def f(:', /SyntaxError/)).end, 'error');
    await sees('kept', '1\n');
  });

  claim('magics, captured commands, scripts and await work', async () => {
    await sees('x = !printf "one\\ntwo"\nprint(x, _exit_code)', "['one', 'two'] 0\n");
    await sees('%%bash\necho from $BASH_SUBSHELL', 'from 0\n');
    await sees('%cd -q /tmp\n%pwd', "'/tmp'\n");
    await sees('import asyncio\nawait asyncio.sleep(0, "slept")', "'slept'\n");
  });

  claim('what only a terminal needs is not loaded, and a cell can import it', async () => {
    await sees('import sys; [name for name in ("prompt_toolkit", "IPython.terminal", "jedi") if name in sys.modules]', '[]\n');
    await sees(
      'from IPython.terminal.debugger import TerminalPdb; import IPython; IPython.terminal.debugger.TerminalPdb is TerminalPdb',
      'True\n',
    );
  });

  claim('input raises an error that says what to do, and programs read an empty input', async () => {
    await sees('input("name? ")', /StdinNotImplementedError: there is no interactive input here/);
    await sees('import getpass; getpass.getpass()', /no interactive input/);
    await sees('!cat', '');
    await sees('x = !cat\nprint(x)', '[]\n');
  });

  claim('an image is returned as data with a note in the text, and one that is too large is left out', async () => {
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const code = `from IPython.display import Image, display\nimport base64\nprint("before"); display(Image(data=base64.b64decode("${png}"))); print("after")`;
    const { images } = await sees(code, 'before\n[image/png 1x1, 70 bytes]\nafter\n');
    assert.deepEqual(images, [{ mimeType: 'image/png', data: Buffer.from(png, 'base64') }]);
    const bomb = await sees('class Big:\n  def _repr_png_(self): return bytes(5 << 20)\nBig()', /5242880 bytes: left out/);
    assert.deepEqual(bomb.images, []);
  });

  claim('output over the cap loses its middle, and invalid text is made valid', async () => {
    const result = await run('print("x" * 20_000_000)', { capBytes: 100 });
    assert.deepEqual([result.totalBytes, result.cutBytes], [20_000_001, 19_999_901]);
    assert.match(result.output, /^x{50}\n\[\.\.\. 19999901 bytes left out \.\.\.\]\nx{49}\n$/);
    await sees('import os\nos.write(1, b"\\xff\\x00\\x1b[31mred\\n");', '\ufffdred\n');
  });

  claim('a cell that takes too long is interrupted, and its variables are kept', async () => {
    for (const code of [
      'import time; print("begun"); time.sleep(100)',
      '!echo begun; sleep 100',
      'print("begun"); await asyncio.sleep(100)',
    ]) {
      const result = await sees(`import asyncio\nkept = 1\n${code}`, /^begun\n[\s\S]*KeyboardInterrupt/, { timeoutMs: 300 });
      assert.deepEqual([result.end, result.stateLost], ['timeout', false], code);
    }
    await sees('kept', '1\n');
  });

  claim('a cell that ignores the interrupt is killed with its process, and the loss is reported', async () => {
    const stubborn = 'import signal\nkept = 1\nprint("begun")\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass';
    const result = await sees(stubborn, 'begun\n', { timeoutMs: 500 });
    assert.deepEqual([result.end, result.stateLost], ['timeout', true]);
    await sees('kept', /NameError/);
  });

  claim('a process that ends during a cell or between two cells is replaced, and the loss is reported', async () => {
    for (const code of [
      'exit()',
      'import os; os._exit(3)',
      'import os; os.kill(os.getpid(), 11)',
      'import os; os.closerange(3, 99)',
      'import os, time; os.kill(os.getppid(), 9); time.sleep(100)',
    ]) {
      const result = await sees(`print("begun")\n${code}`, 'begun\n');
      assert.deepEqual([result.end, result.stateLost], ['host-died', true], code);
    }
    await sees('import os; print(os.getpid(), os.getppid())', /^\d+ \d+\n$/);
    await sandbox().runShell('pkill -9 python3', { timeoutMs });
    assert.match((await run('"new"')).output + (await run('"new"')).output, /'new'\n$/);
  });

  claim('a stopped parent process blocks no cell', async () => {
    const result = await run('import os, signal; os.kill(os.getppid(), signal.SIGSTOP); os._exit(0)', { timeoutMs: 100 });
    assert.deepEqual([result.end, result.stateLost], ['timeout', true]);
    await sees('1', '1\n');
  });

  claim('a restart starts without variables', async () => {
    await sees('kept = 1', '');
    await sees('kept', /NameError/, { restart: true });
  });

  claim('changes to streams and signals, and forked processes, do not affect the next cell', async () => {
    await run('import os, sys, signal; os.close(1); os.close(2); sys.stdout.close(); signal.signal(signal.SIGINT, signal.SIG_IGN)');
    await sees('print("still")', 'still\n');
    assert.equal((await run('import time; time.sleep(100)', { timeoutMs: 100 })).stateLost, false);
    await sees('import os\nchild = os.fork()\nif child: os.wait()\nprint(child > 0)', 'False\nTrue\n');
    await sees('import logging; logging.warning("first")', 'WARNING:root:first\n');
    await sees('logging.warning("second")', 'WARNING:root:second\n');
    await run('import os\nfor fd in range(3, 40):\n  try: os.write(fd, bytes(8) + b"junk")\n  except OSError: pass');
    await sees('1', /1\n$/, { restart: true });
  });

  claim('a cancelled cell throws the reason at once, and the next cell has its variables', async () => {
    const cancel = new AbortController();
    await run('kept = 1');
    const running = run('import time; time.sleep(100)', { signal: cancel.signal });
    setImmediate(() => cancel.abort(new Error('no longer wanted')));
    await assert.rejects(running, /no longer wanted/);
    await sees('kept', '1\n');
  });

  test('without IPython, the output says what is missing and how to install it', async () => {
    await using bare = await driver().open({ env: { PATH: '/nowhere' } });
    const result = await bare.runPython('1', { timeoutMs });
    assert.equal(result.end, 'missing');
    assert.match(result.output, /(no python3 in the PATH|python3: not found).*pip install ipython/);
  });

  claim('files of IPython are not in the workspace', async () => {
    await using fresh = await driver().open({});
    await fresh.runPython('1', { timeoutMs });
    assert.equal((await fresh.runShell('ls -A', { timeoutMs })).output, '');
  });
}
