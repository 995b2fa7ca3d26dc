// The Python program that runs a check written in Python, and the library that such a check imports as `millrace.check`. It needs nothing but
// the standard library of Python 3.8 or later.

import { reports } from './check-prelude.ts';

/**
 * - The channel of reports is closed in every program that the check starts, and no other process may open this one's memory or files.
 * - The last reward is reported once, when the check ends.
 * - Nothing is imported from /workspace: Python runs isolated.
 */
export const pythonCheck = `import ctypes, os, sys, types

def _start():
    folder = sys.argv[1]
    if ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) != 0:
        raise OSError('the check cannot hide its memory')
    secret, script = sys.stdin.buffer.read().split(b'\\0')[:2]
    channel = os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    pid, kept = os.getpid(), {}
    def report(text):
        if os.getpid() == pid:
            os.write(channel, secret + b' ' + text.encode('utf-8', 'replace').replace(b'\\n', b' ') + b'\\n')
    check = types.ModuleType('millrace.check')
    check.__dict__.update(_folder=folder, _kept=kept)
    source = _library()
    exec(compile(source, 'millrace/check.py', 'exec'), check.__dict__)
    package = types.ModuleType('millrace')
    package.__path__, package.check = [], check
    sys.modules['millrace'], sys.modules['millrace.check'] = package, check
    sys.argv[:] = ['check']
    main = types.ModuleType('__main__')
    sys.modules['__main__'] = main
    try:
        code = compile(script, 'check', 'exec')
    except (SyntaxError, ValueError) as error:
        report('${reports.fault} %s' % error)
        sys.exit(125)
    try:
        exec(code, main.__dict__)
    finally:
        sys.stdout.flush()
        report('${reports.reward} %s' % kept['reward'] if 'reward' in kept else '${reports.end}')

def _library():
    return r'''
import itertools, os, re
from decimal import Decimal, InvalidOperation

answer = os.environ.get('ANSWER', '')
_names = itertools.count(os.getpid() * 100000)
_requests = os.open(_folder + '/requests', os.O_RDWR)

class Result:
    """What a program of the agent did. All of it is the agent's: compare the output, and never let the exit code decide."""
    def __init__(self, exit_code, stdout, stderr):
        self.exit_code, self.stdout, self.stderr = exit_code, stdout, stderr

class TestResult(Result):
    """What the test runner itself saw: names of tests that passed and that did not. \`ok\`: it ran to its end, and all of them passed."""
    def __init__(self, exit_code, stdout, stderr):
        super().__init__(exit_code, stdout, stderr)
        lines = [line.partition(' ') for line in stdout.splitlines()]
        self.passed = [name for status, _, name in lines if status == 'PASSED']
        self.failed = [name for status, _, name in lines if status not in ('PASSED', 'SKIPPED')]
        self.ok = exit_code == 0

def reward(number):
    """Reports a number; the last one counts."""
    _kept['reward'] = repr(float(number))

def judged(*command, stdin='', env=None, files=(), cwd=None):
    """Runs a program of the agent in its own sandbox, with the agent's files, and those of the check that \`files\` names."""
    return Result(*_run('command', command, stdin, env, files, cwd))

def judged_tests(*command, env=None, files=(), cwd=None):
    """Runs tests of the check with pytest or unittest in the sandbox of judged programs."""
    return TestResult(*_run('tests', command, '', env, files, cwd))

def _run(kind, command, stdin, env, files, cwd):
    at = '%s/judged-%d' % (_folder, next(_names))
    os.mkfifo(at + '.reply')
    reply = os.open(at + '.reply', os.O_RDWR)
    fields = [kind, cwd or os.getcwd(), len(command), *command]
    fields += [len(env or {}), *('%s=%s' % item for item in (env or {}).items())]
    fields += [len(files), *(os.path.join(os.getcwd(), file) for file in files)]
    with open(at + '.in', 'wb') as file:
        file.write(stdin if isinstance(stdin, bytes) else stdin.encode('utf-8', 'surrogateescape'))
    with open(at + '.request', 'wb') as file:
        file.write(b''.join(str(field).encode('utf-8', 'surrogateescape') + b'\\0' for field in fields))
    os.write(_requests, (os.path.basename(at) + '\\n').encode())
    code = int(os.read(reply, 100))
    os.close(reply)
    texts = [_read(at + ending) for ending in ('.out', '.err')]
    for ending in ('.out', '.err', '.in', '.request', '.reply'):
        if os.path.exists(at + ending):
            os.unlink(at + ending)
    return [code, *texts]

def _read(path):
    with open(path, 'rb') as file:
        return file.read().decode('utf-8', 'replace')

def file_text(path, default=''):
    """The text of a file that the agent left, or the default if it is not a plain file."""
    return _read(path) if os.path.isfile(path) else default

def is_text(value, want):
    return value.strip() == want.strip()

def is_match(value, regex):
    """Whether the whole text matches."""
    return re.fullmatch(regex, value) is not None

_number = re.compile(r'[+-]?([0-9]{1,300}([.][0-9]{0,300})?|[.][0-9]{1,300})([eE][+-]?[0-9]{1,3})?', re.ASCII)

def _decimal(value):
    text = str(value).strip(' \\t\\r\\n')
    try:
        return Decimal(text) if _number.fullmatch(text) else None
    except InvalidOperation:
        return None

def is_number(value, want, tolerance=0):
    number = _decimal(value)
    return number is not None and abs(number - Decimal(str(want))) <= Decimal(str(tolerance))

def in_range(value, low, high):
    number = _decimal(value)
    return number is not None and Decimal(str(low)) <= number <= Decimal(str(high))

def same_file(path, other):
    return os.path.isfile(path) and os.path.isfile(other) and open(path, 'rb').read() == open(other, 'rb').read()
'''

_start()
`;
