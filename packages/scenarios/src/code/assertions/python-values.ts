// Python values as JSON, so that arguments and results pass between the program and the tests as data: plain values only, never an object
// with a behaviour of its own. What is no plain value equals nothing.

/** Defines `pack`, which raises `Unfit` if `strict`, and `unpack`. */
export const pythonValues = `
import collections as _collections, itertools as _itertools, json as _json
class Unfit(Exception): pass
class Opaque:
    __hash__ = None
    def __init__(self, name): self.name = name
    def __eq__(self, other): return False
    def __repr__(self): return '<a value of type %s>' % self.name
def pack(value, strict=False):
    inner = lambda many: [pack(one, strict) for one in many]
    if value is None or value is True or value is False: return value
    if isinstance(value, int): return int(value)
    if isinstance(value, float): return float(value)
    if isinstance(value, str): return str(value)
    if isinstance(value, list): return inner(value)
    if isinstance(value, tuple): return {'t': inner(value)}
    if isinstance(value, dict): return {'d': [[pack(key, strict), pack(one, strict)] for key, one in value.items()]}
    if isinstance(value, (set, frozenset)): return {'s' if isinstance(value, set) else 'z': sorted(inner(value), key=_json.dumps)}
    if isinstance(value, (bytes, bytearray)): return {'b': bytes(value).hex()}
    if isinstance(value, complex): return {'c': [value.real, value.imag]}
    if isinstance(value, _collections.deque): return {'q': inner(value)}
    if type(value).__module__ == 'numpy' and hasattr(value, 'tolist'): return pack(value.tolist(), strict)
    if strict: raise Unfit('a value of type %s is no plain value' % type(value).__name__)
    if hasattr(value, '__next__'): return {'i': inner(_itertools.islice(value, 1000000))}
    return {'o': type(value).__name__}
def unpack(value):
    if isinstance(value, list): return [unpack(one) for one in value]
    if not isinstance(value, dict): return value
    (kind, inner), = value.items()
    if kind == 'd': return {unpack(key): unpack(one) for key, one in inner}
    if kind == 'b': return bytes.fromhex(inner)
    if kind == 'c': return complex(*inner)
    if kind == 'o': return Opaque(str(inner))
    make = {'t': tuple, 's': set, 'z': frozenset, 'q': _collections.deque, 'i': iter}[kind]
    return make([unpack(one) for one in inner])
`;
