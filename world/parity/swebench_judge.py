# Judges logs and test results with the harness of SWE-bench: reads a JSON object with `logs` (parser and text), `grades` (statuses and
# expected tests) and `runs` (a whole log with its exit code), prints what the harness says as JSON.

import contextlib
import importlib.util
import io
import json
import sys
import tempfile
import types
from pathlib import Path

# The package itself imports Docker and data sets, which grading does not need.
folder = Path(importlib.util.find_spec("pip").submodule_search_locations[0]).parent / "swebench"
for name, path in (("swebench", folder), ("swebench.harness", folder / "harness")):
    module = types.ModuleType(name)
    module.__path__ = [str(path)]
    sys.modules[name] = module

from swebench.harness import grading  # noqa: E402
from swebench.harness.constants import EvalType  # noqa: E402
from swebench.harness.log_parsers import PARSER_REGISTRY  # noqa: E402
from swebench.types import TestSpec  # noqa: E402


def spec(parser="parse_log_pytest"):
    return TestSpec("a__b-1", "", [], "a/b", "1", [], [], parser, "pass_and_fail")


def grade(case):
    gold = {"FAIL_TO_PASS": case["fail_to_pass"], "PASS_TO_PASS": case["pass_to_pass"]}
    report = grading.get_eval_tests_report(case["statuses"], gold, eval_type=EvalType(case["eval_type"]))
    lists = [report[kind][end] for kind in ("FAIL_TO_PASS", "PASS_TO_PASS") for end in ("success", "failure")]
    return {"resolved": grading.get_resolution_status(report) == "RESOLVED_FULL", "lists": lists}


def found(case):
    text = f">>>>> Start Test Output\n{case['log']}\n>>>>> End Test Output\n>>>>> Test Exit Code: {case['exit_code']}\n"
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        return grading.get_logs_eval(spec(), file.name)[1]


def main():
    cases = json.load(sys.stdin)
    with contextlib.redirect_stdout(io.StringIO()):
        logs = [PARSER_REGISTRY[f"parse_log_{parser}"](log, spec()) for parser, log in cases["logs"]]
    print(json.dumps({"logs": logs, "grades": [grade(case) for case in cases["grades"]], "runs": [found(case) for case in cases["runs"]]}))


main()
