// The Python program that runs a program of the agent on many tests in one sandbox. It reads one test at a time and knows no expected output,
// so that controlling it gains nothing.

/**
 * - Frames in both directions: four bytes of length, JSON of that length, and the bytes that the JSON announces.
 * - The kernel lets no other process open or trace it, since it is not dumpable. Its children may be.
 * - A Python program is compiled once, and each test is a fork. Any other program is started for each test.
 * - After each test every other process of the sandbox is killed, and all of them are waited for.
 * - The time limit is for the CPU time of all processes of the program. Its sleep is limited too: time in which no thread of it is busy. A
 *   thread that is ready to run and has no core, or waits for the disk or for memory, does not sleep. A program that the machine gives too
 *   little for a long time ends as `starved`, which is no verdict.
 */
export const runnerProgram = `import ctypes, json, os, resource, select, signal, sys, time, types
libc = ctypes.CDLL(None)
libc.prctl(4, 0, 0, 0, 0)
libc.prctl(36, 1, 0, 0, 0)
source, report = os.dup(0), os.dup(1)
null = os.open('/dev/null', os.O_RDWR)
for number in (0, 1, 2): os.dup2(null, number)
wake_read, wake_write = os.pipe()
os.set_blocking(wake_read, False)
os.set_blocking(wake_write, False)
signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
signal.signal(signal.SIGCHLD, lambda *_: None)
TICKS = os.sysconf('SC_CLK_TCK')
LOOK = 0.1
PRELUDE = compile('''from math import *
from typing import *
from collections import *
from itertools import *
from functools import *
from heapq import *
from bisect import *
from string import *
from operator import *
from fractions import Fraction
from builtins import *
import sys, os, re, math, collections, itertools, functools, heapq, bisect, string, operator, random, copy, datetime, io, json, time, statistics
''', 'prelude', 'exec')
def read_exactly(size):
    parts = []
    while size > 0:
        part = os.read(source, min(size, 1 << 20))
        if not part: raise EOFError
        parts.append(part); size -= len(part)
    return b''.join(parts)
def read_frame():
    head = json.loads(read_exactly(int.from_bytes(read_exactly(4), 'big')))
    return head, read_exactly(head['bytes'])
def write_frame(head, *bodies):
    data = json.dumps(head).encode()
    left = memoryview(b''.join([len(data).to_bytes(4, 'big'), data, *bodies]))
    while left: left = left[os.write(report, left):]
def limit(kind, value):
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY: value = min(value, hard)
    resource.setrlimit(kind, (value, value))
def end_child(status):
    try:
        if 'threading' in sys.modules: sys.modules['threading']._shutdown()
        if 'atexit' in sys.modules: sys.modules['atexit']._run_exitfuncs()
        sys.stdout.flush()
    except BaseException: status = status or 120
    try: sys.stderr.flush()
    except BaseException: pass
    os._exit(status)
def run_python(code, name, body, result):
    module = types.ModuleType('__main__')
    module.__file__ = 'solution.py'
    sys.modules['__main__'] = module
    sys.argv = ['solution.py']
    sys.path.insert(0, '/workspace')
    space = module.__dict__
    status = 0
    try:
        exec(PRELUDE, space)
        space.pop(name, None) # operator's add is not the program's
        exec(code, space)
        if name is not None:
            owner = space.get('Solution')
            method = getattr(owner(), name, None) if isinstance(owner, type) else None
            value = (method or space[name])(*json.loads(body))
            data = memoryview(json.dumps(value).encode())
            while data: data = data[os.write(result, data):]
    except SystemExit as error:
        code = error.code
        if code is not None and not isinstance(code, int): print(code, file=sys.stderr)
        status = code & 255 if isinstance(code, int) else 0 if code is None else 1
    except BaseException:
        import traceback
        traceback.print_exc()
        status = 1
    end_child(status)
def start(job, test, body, pipes):
    (in_read, _), (_, out_write), (_, err_write), (_, res_write) = pipes
    signal.set_wakeup_fd(-1)
    for one in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ): signal.signal(one, signal.SIG_DFL)
    os.setsid()
    for number, fd in enumerate((in_read, out_write, err_write)): os.dup2(fd, number)
    keep = os.dup(res_write) if job.get('function') else -1
    if keep >= 0: os.set_inheritable(keep, False)
    os.closerange(3, keep) if keep > 3 else None
    os.closerange(max(keep + 1, 3), 4096)
    libc.prctl(36, 0, 0, 0, 0)
    libc.prctl(4, 1, 0, 0, 0)
    try:
        with open('/proc/self/oom_score_adj', 'w') as file: file.write('1000')
    except OSError: pass
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_CPU, int(test['time_ms'] / 1000) + 1)
    limit(resource.RLIMIT_STACK, min(test['memory_mib'], 256) << 20)
    if 'runtime_mib' not in job: limit(resource.RLIMIT_AS, test['memory_mib'] + 96 << 20)
    if job['mode'] == 'python': run_python(job['code'], job.get('function'), body, keep)
    argv = test.get('argv') or job['argv']
    try: os.execvp(argv[0], argv)
    except BaseException as error:
        os.write(2, str(error).encode()); os._exit(127)
def read_stat(path):
    with open(path) as file: return file.read().rpartition(')')[2].split()
def read_wait(path):
    with open(path + '/wchan') as file: return file.read()
def is_busy(path):
    # One that waits for the child of its vfork is in D too, for as long as the child likes, and a program may hide what it waits for.
    state = read_stat(path + '/stat')[0]
    if state != 'D': return state == 'R'
    seen = read_wait(path)
    return not SHOWS_WAITS if seen in ('', '0') else 'fork' not in seen and 'clone' not in seen
def shows_waits():
    # Whether this kernel says what a thread waits for.
    import threading
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    seen = [time.sleep(0.002) or read_wait(f'/proc/self/task/{thread.native_id}') for _ in range(5)]
    over.set(); thread.join()
    return any(one not in ('', '0') for one in seen)
def children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
class Use:
    # What the processes that were started since then used: CPU time in seconds, also of those that no process waited for, and sleep.
    def __init__(self):
        self.before = set(os.listdir('/proc'))
        self.ended, self.cpu, self.lost, self.slept = children_cpu(), 0, 0, 0
        self.looked, self.busy = time.monotonic(), True
    def look(self):
        ticks, busy = 0, False
        for name in set(os.listdir('/proc')) - self.before:
            if not name.isdigit(): continue
            try:
                ticks += sum(map(int, read_stat(f'/proc/{name}/stat')[11:15]))
                busy = busy or any(is_busy(f'/proc/{name}/task/{task}') for task in os.listdir(f'/proc/{name}/task'))
            except (OSError, IndexError): pass
        self.count(ticks / TICKS)
        now = time.monotonic()
        if not busy and not self.busy: self.slept += now - self.looked
        self.looked, self.busy = now, busy
    def count(self, living):
        cpu = children_cpu() - self.ended + living + self.lost
        if cpu < self.cpu: self.lost += self.cpu - cpu
        self.cpu = max(cpu, self.cpu)
def run_test(job, test, body):
    use = Use()
    pipes = [os.pipe() for _ in range(4)]
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        try: start(job, test, body, pipes)
        finally: os._exit(125)
    (in_read, in_write), (out_read, out_write), (err_read, err_write), (res_read, res_write) = pipes
    for fd in (in_read, out_write, err_write, res_write): os.close(fd)
    for fd in (in_write, out_read, err_read, res_read): os.set_blocking(fd, False)
    left = memoryview(b'' if job.get('function') else body)
    outputs = {out_read: [], err_read: [], res_read: []}
    sizes = dict.fromkeys(outputs, 0)
    poll = select.poll()
    for fd in (*outputs, wake_read): poll.register(fd, select.POLLIN)
    if left: poll.register(in_write, select.POLLOUT)
    else: os.close(in_write)
    open_input, end, status, usage = bool(left), 'exit', None, None
    def drain(fd):
        for _ in range(64):
            try: data = os.read(fd, 1 << 16)
            except BlockingIOError: return True
            if not data: return False
            sizes[fd] += len(data)
            if sizes[fd] <= test['output_bytes']: outputs[fd].append(data)
            elif fd == err_read: continue
            else: return 'full'
        return True
    while status is None:
        if time.monotonic() - use.looked > LOOK:
            use.look()
            if use.cpu * 1000 > test['time_ms'] or use.slept * 1000 > test['sleep_ms']: end = 'time'; break
            if (time.monotonic() - started) * 1000 > test['wall_ms']: end = 'starved'; break
        for fd, event in poll.poll(LOOK * 1000):
            if fd == wake_read:
                try: os.read(wake_read, 4096)
                except BlockingIOError: pass
            elif fd in outputs:
                state = drain(fd)
                if state == 'full': end = 'output'
                if state is not True: poll.unregister(fd)
            else:
                try: left = left[os.write(in_write, left[:65536]):] if event & select.POLLOUT else memoryview(b'')
                except OSError: left = memoryview(b'')
                if not left: poll.unregister(in_write); os.close(in_write); open_input = False
        if end == 'output': break
        done, code, used = os.wait4(pid, os.WNOHANG)
        if done == pid: status, usage = code, used
    wall = time.monotonic() - started
    if status is None:
        os.kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
    try: os.kill(-1, signal.SIGKILL)
    except ProcessLookupError: pass
    while True:
        try: os.waitpid(-1, 0)
        except ChildProcessError: break
    if end == 'exit':
        for fd in outputs:
            if drain(fd) == 'full' and fd != err_read: end = 'output'
    for fd in (*outputs, *([in_write] if open_input else [])): os.close(fd)
    use.count(0)
    cpu = use.cpu
    if end == 'exit' and (cpu * 1000 > test['time_ms'] or os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU): end = 'time'
    if end == 'exit' and usage.ru_maxrss > test['memory_mib'] + job.get('runtime_mib', 0) << 10: end = 'memory'
    out, err, res = (b''.join(outputs[fd]) for fd in (out_read, err_read, res_read))
    if end != 'exit': out = res = b''
    err = err[-2000:]
    own = resource.getrusage(resource.RUSAGE_SELF)
    write_frame({'end': end, 'own_ms': round((own.ru_utime + own.ru_stime) * 1000, 1), 'exit': os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        'signal': os.WTERMSIG(status) if os.WIFSIGNALED(status) else None, 'cpu_ms': round(cpu * 1000, 1), 'wall_ms': round(wall * 1000, 1),
        'rss_mib': usage.ru_maxrss >> 10, 'out': len(out), 'result': len(res), 'err': len(err)}, out, res, err)
    return end == 'exit' and status == 0
def load_modules():
    # Once, for all forks. Other programs do not wait for them.
    import bisect, collections, copy, datetime, fractions, functools, heapq, io, itertools, math, operator, random, re, statistics, string, typing
def main():
    job, text = read_frame()
    write_frame({'ready': True})
    if job['mode'] == 'python':
        load_modules()
        try: job['code'] = compile(text.decode('utf-8', 'surrogateescape'), 'solution.py', 'exec', dont_inherit=True)
        except BaseException as error:
            write_frame({'compile_error': str(error)[:2000]}); return
    while True:
        try: test, body = read_frame()
        except EOFError: return
        if not run_test(job, test, body) and job['stop_early']: return
os.chdir('/workspace')
SHOWS_WAITS = shows_waits()
main()
`;
