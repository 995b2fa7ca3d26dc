// What is appended to the agent's program where assertions test it: it makes the calls that the tests want, and returns what they returned.
// It shares an interpreter with the agent's code, which can change it; what it returns is only ever read as data.

import { pythonValues } from './python-values.ts';

export const callFunction = '__millrace_calls';

/** A function of the program, a method of its class `Solution`, or `Solution().name`. */
export const callProgram = `

def ${callFunction}(calls):
    space = {}
    exec(${JSON.stringify(pythonValues)}, space)
    pack, unpack, dumps = space['pack'], space['unpack'], space['_json'].dumps
    program = globals()
    def find(name):
        if name.startswith('Solution().'): return getattr(program['Solution'](), name[11:])
        return program[name] if name in program else getattr(program['Solution'](), name)
    results = []
    for name, args, named in calls:
        args = [unpack(one) for one in args]
        try:
            value = find(name)(*args, **{key: unpack(one) for key, one in named.items()})
            results.append({'value': pack(value), 'args': [pack(one) for one in args]})
        except Exception as error: results.append({'error': [type(error).__name__, str(error)[:1000]]})
    return dumps(results)
`;
