// The Python program that runs test code with assertions, in a sandbox in which nothing of the agent runs. In place of the functions of the
// agent's program it has functions that return what the program returned for the same arguments, in another sandbox.

import { pythonValues } from './python-values.ts';

export const testFunction = 'run_tests';

/**
 * - A call without a known result is noted, and returns a value that agrees with everything, so that one run notes as many calls as it can.
 *   While such values are around, failed assertions and exceptions say nothing, and the test is run again with the results.
 * - \`known\` is a list of calls, each list with the JSON of the results.
 * - Of pytest it has \`raises\`, \`approx\`, \`mark\` and \`fail\`.
 */
export const testProgram = `${pythonValues}
import ast, builtins, json, math, random, sys, types
maxCalls = 20000
class Stop(BaseException): pass
class NotPlain(BaseException): pass
class Pending:
    def _self(self, *args, **named): return self
    def _yes(self, *args): return True
    for _name in 'add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow neg pos abs round and or xor rand ror getitem getattr call'.split():
        locals()['__%s__' % _name] = _self
    for _name in 'eq ne lt le gt ge contains bool'.split(): locals()['__%s__' % _name] = _yes
    def __hash__(self): return 0
    def __iter__(self): return iter(())
    def __len__(self): return 1
    def __float__(self): return 0.0
    __int__ = __index__ = lambda self: 0
class Approx:
    __hash__ = None
    def __init__(self, value, rel=None, abs=None, nan_ok=False): self.value, self.rel, self.abs, self.nan_ok = value, 1e-6 if rel is None else rel, 1e-12 if abs is None else abs, nan_ok
    def __eq__(self, other):
        if isinstance(other, Pending): return True
        def near(a, b):
            if isinstance(b, dict): return isinstance(a, dict) and a.keys() == b.keys() and all(near(a[key], b[key]) for key in b)
            if isinstance(b, (list, tuple)): return isinstance(a, (list, tuple)) and len(a) == len(b) and all(map(near, a, b))
            if isinstance(a, (int, float, complex)) and isinstance(b, (int, float, complex)):
                return a == b or self.nan_ok and a != a and b != b or abs(a - b) <= max(self.rel * abs(b), self.abs)
            return a == b
        return near(other, self.value)
def make_pytest(state):
    class Raises:
        def __init__(self, kind, match=None): self.kind, self.match, self.value = kind, match, None
        def __enter__(self): return self
        def __exit__(self, kind, error, trace):
            if error is None:
                if state['pending']: return False
                raise AssertionError('no exception was raised')
            if not isinstance(error, self.kind): return False
            import re
            self.value = error
            return self.match is None or re.search(self.match, str(error)) is not None
    def raises(kind, call=None, *args, match=None, **named):
        if call is None: return Raises(kind, match)
        with Raises(kind): call(*args, **named)
    def parametrize(names, rows, **_):
        names = [one.strip() for one in names.split(',')] if isinstance(names, str) else list(names)
        def decorate(test):
            def run(**given):
                for row in rows:
                    row = getattr(row, 'values_of_row', row)
                    test(**given, **dict(zip(names, row if len(names) > 1 else (row,))))
            return run
        return decorate
    class Mark:
        def __getattr__(self, name): return parametrize if name == 'parametrize' else lambda *args, **named: args[0] if args and callable(args[0]) else lambda test: test
    def fail(*args, **named):
        if not state['pending']: raise AssertionError(args[0] if args else 'pytest.fail')
    def param(*row, **_): return types.SimpleNamespace(values_of_row=row if len(row) > 1 else row[0])
    module = types.ModuleType('pytest')
    module.__dict__.update(raises=raises, approx=Approx, mark=Mark(), fail=fail, param=param)
    return module
class Asserts(ast.NodeTransformer):
    def visit_Assert(self, node):
        self.generic_visit(node)
        none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        parts = [ast.Lambda(none, one) for one in (node.test, node.msg or ast.Constant(''))]
        check = ast.Expr(ast.Call(ast.Name('__check__', ast.Load()), parts, []))
        return ast.fix_missing_locations(ast.copy_location(check, node))
def load(text, space): exec(compile(Asserts().visit(ast.parse(text)), 'tests', 'exec'), space)
def write_back(given, after):
    if type(given) is not type(after): return
    if isinstance(given, list) and given != after: given[:] = after
    elif isinstance(given, (dict, set)) and given != after: given.clear(); given.update(after)
def give(result, args):
    if 'error' in result:
        name, text = result['error']
        kind = getattr(builtins, str(name), None)
        if not (isinstance(kind, type) and issubclass(kind, Exception)): kind = type(str(name), (Exception,), {})
        try: error = kind(text)
        except Exception: error = Exception(text)
        raise error
    for given, after in zip(args, result['args']): write_back(given, unpack(after))
    return unpack(result['value'])
def run_tests(setup, case, names, known):
    state = {'pending': []}
    seen, results = {}, {}
    def make(name):
        def call(*args, **named):
            try: packed = [name, [pack(one, True) for one in args], {key: pack(one, True) for key, one in named.items()}]
            except Unfit as error:
                if state['pending']: raise Stop
                raise NotPlain('%s is called with %s' % (name, error))
            key = json.dumps(packed, sort_keys=True)
            count = seen[key] = seen.get(key, -1) + 1
            if count < len(results.get(key, ())): return give(results[key][count], args)
            if len(state['pending']) >= maxCalls: raise Stop
            state['pending'].append(packed)
            return Pending()
        call.__name__ = name
        return call
    def check(test, message):
        try: isRight = bool(test())
        except Exception:
            if state['pending']: return
            raise
        if not isRight and not state['pending']: raise AssertionError(str(message())[:500])
    stubs = {name: make(name) for name in names}
    solution = types.ModuleType('solution')
    solution.__dict__.update(stubs)
    sys.modules.update(solution=solution, pytest=make_pytest(state))
    space = {'__name__': 'test_solution', '__check__': check, 'candidate': stubs[names[0]], **stubs}
    random.seed(0)
    try:
        for calls, text in known:
            for call, result in zip(calls, json.loads(json.loads(text))): results.setdefault(json.dumps(call, sort_keys=True), []).append(result)
        load(setup, space)
        load(case, space)
        outcome = {'state': 'passed'}
    except Stop: outcome = {}
    except NotPlain as error: outcome = {'state': 'refused', 'why': str(error)}
    except BaseException as error: outcome = {'state': 'failed', 'why': ('%s: %s' % (type(error).__name__, error))[:1000]}
    if state['pending'] and outcome.get('state') != 'refused': outcome = {'state': 'pending', 'calls': json.dumps(state['pending'])}
    return {**outcome, 'used': len(seen)}
`;
