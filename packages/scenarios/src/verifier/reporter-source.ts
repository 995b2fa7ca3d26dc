// The Python modules that report what pytest and unittest themselves saw, besides the log. Their records are signed with a key that only they
// and the worker have, so that output that looks like passed tests counts for nothing.

/**
 * - pytest loads it by `-p` in PYTEST_ADDOPTS, before any file of the repository. At that moment it takes the key out of its file, and leaves
 *   the next one for another process of the same command.
 * - unittest is changed when it is imported, by `siteSource`.
 * - It is silent in the workers of xdist and in forked processes, for which the main process reports.
 * - It runs in any Python from 2.7; unittest is reported from Python 3.4.
 */
export const reporterSource = `import hashlib, hmac, json, os

def _open(folder):
    sha, new, write, getpid, dumps = hashlib.sha256, hmac.new, os.write, os.getpid, json.dumps
    path = os.path.join(folder, 'key')
    with open(path, 'rb') as file:
        key = file.read().strip()
    with open(path, 'wb') as file:
        file.write(sha(key + b'next').hexdigest().encode('ascii'))
    target = os.open(os.path.join(folder, 'records'), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    state = {'count': 0, 'pid': getpid()}
    def report(*fields):
        if getpid() != state['pid']:
            return
        text = dumps([state['count']] + list(fields)).encode('ascii')
        state['count'] += 1
        write(target, new(key, text, sha).hexdigest().encode('ascii') + b' ' + text + b'\\n')
    return report

def _take():
    try:
        return _open(os.path.dirname(os.path.abspath(__file__)))
    except Exception:
        return None

_first = [_take()]

def _next():
    return _first.pop() if _first else _take()

class _Reporter(object):
    def __init__(self, report):
        self.report = report
    def pytest_runtest_logreport(self, report):
        if report.when == 'call' or report.outcome != 'passed':
            self.report('pytest', report.nodeid, report.when, report.outcome, getattr(report, 'wasxfail', None) is not None)
    def pytest_collectreport(self, report):
        if report.failed:
            self.report('pytest', report.nodeid, 'collect', 'failed', False)
    def pytest_sessionfinish(self, session, exitstatus):
        self.report('end', 'pytest')

def pytest_configure(config):
    if hasattr(config, 'workerinput') or hasattr(config, 'slaveinput') or not _first:
        return
    report = _next()
    if report is not None:
        report('start', 'pytest')
        config.pluginmanager.register(_Reporter(report))

def watch_unittest(result):
    state = {'report': None}
    def wrap(name, status):
        original = getattr(result, name)
        def method(self, test, *args, **kwargs):
            if state['report'] is not None:
                state['report']('unittest', str(test), str(getattr(test, 'shortDescription', str)() or ''), status)
            return original(self, test, *args, **kwargs)
        setattr(result, name, method)
    for name, status in (('addSuccess', 'ok'), ('addFailure', 'FAIL'), ('addError', 'ERROR'), ('addSkip', 'skipped'), ('addExpectedFailure', 'expected failure')):
        wrap(name, status)
    def start(self, original=result.startTestRun):
        if state['report'] is None:
            state['report'] = _next()
            if state['report'] is not None:
                state['report']('start', 'unittest')
        return original(self)
    def stop(self, original=result.stopTestRun):
        if state['report'] is not None:
            state['report']('end', 'unittest')
            state['report'] = None
        return original(self)
    result.startTestRun, result.stopTestRun = start, stop
`;

/** `sitecustomize`: changes unittest when it is imported, and then does what the module of that name in the image does. */
export const renderSiteSource = (reporter: string): string => `import os, sys

class MillraceFinder(object):
    def find_spec(self, name, path=None, target=None):
        if name != 'unittest.result':
            return None
        sys.meta_path.remove(self)
        from importlib.machinery import PathFinder
        spec = PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module
        def exec_module(module):
            run(module)
            import ${reporter}
            ${reporter}.watch_unittest(module.TestResult)
        spec.loader.exec_module = exec_module
        return spec

if sys.version_info >= (3, 4):
    sys.meta_path.insert(0, MillraceFinder())

def chain():
    here, saved = os.path.dirname(os.path.abspath(__file__)), sys.path[:]
    sys.path[:] = [one for one in saved if os.path.abspath(one or '.') != here]
    sys.modules.pop('sitecustomize', None)
    try:
        import sitecustomize
    except ImportError:
        pass
    finally:
        sys.path[:] = saved

chain()
`;
