# Judges outputs of programs with the checkers of LiveCodeBench (as lighteval has it) and of APPS (as verl has it): reads a JSON object with
# `stdio` pairs of given and expected output and `calls` of given and expected results, prints the verdicts of both checkers as JSON.

import contextlib
import importlib.util
import io
import json
import sys
import types
from pathlib import Path


def load(package, path):
    folder = Path(importlib.util.find_spec(package).submodule_search_locations[0])
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), folder / f"{path}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_livecodebench(lcb, given, expected):
    with contextlib.redirect_stdout(io.StringIO()):
        code = f"import sys\nsys.stdout.write({given!r})"
        result = lcb.grade_stdio(code=code, all_inputs=[""], all_outputs=[expected], timeout=6)
    verdicts = result[0] if isinstance(result, tuple) else result
    return bool(verdicts) and all(one is True for one in verdicts)


def call_by_livecodebench(lcb, given, expected):
    with contextlib.redirect_stdout(io.StringIO()):
        code = f"import json\ndef solve(x):\n    return json.loads({given!r})"
        result = lcb.grade_call_based(code=code, all_inputs=["0"], all_outputs=[expected], fn_name="solve", timeout=6)
    verdicts = result[0] if isinstance(result, tuple) else result
    return bool(verdicts) and all(one is True for one in verdicts)


def by_apps(apps, given, expected):
    with contextlib.redirect_stdout(io.StringIO()):
        code = f"import sys\nsys.stdout.write({given!r})"
        verdicts, _ = apps.run_test({"inputs": [""], "outputs": [expected]}, test=code, timeout=6)
    return bool(verdicts) and all(one is True for one in verdicts)


def main():
    cases = json.load(sys.stdin)
    lcb = load("lighteval", "tasks/tasks/lcb/codegen_metrics")
    report = {
        "livecodebench": [by_livecodebench(lcb, given, expected) for given, expected in cases["stdio"]],
        "calls": [call_by_livecodebench(lcb, given, expected) for given, expected in cases["calls"]],
    }
    # Last: its guard takes away functions of this process.
    apps = load("verl", "utils/reward_score/prime_code/testing_util")
    apps.reliability_guard = lambda *args, **kwargs: None
    apps.faulthandler = types.SimpleNamespace(enable=lambda: None)
    report["apps"] = [by_apps(apps, given, expected) for given, expected in cases["stdio"]]
    print(json.dumps(report))


main()
