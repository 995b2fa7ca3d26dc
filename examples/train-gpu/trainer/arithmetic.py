"""Five kinds of arithmetic, with or without the IPython tool."""

from __future__ import annotations

import random

from .task_set import Part, Task, TaskSet, answer, call, result

TITLES = {"add1": "1-digit +", "add2": "2-digit +", "sub2": "2-digit −", "add3": "three numbers +", "mul": "1 × 2 digits"}


def draw(rng: random.Random, kind: str) -> Task:
    one, two, three = rng.randint(10, 99), rng.randint(10, 99), rng.randint(10, 99)
    if kind == "add1":
        one, two = rng.randint(0, 9), rng.randint(0, 9)
        text, found = f"{one} + {two}", one + two
    elif kind == "add2":
        text, found = f"{one} + {two}", one + two
    elif kind == "sub2":
        text, found = f"{one} - {two}", one - two
    elif kind == "add3":
        text, found = f"{one} + {two} + {three}", one + two + three
    else:
        one = rng.randint(2, 9)
        text, found = f"{one} * {two}", one * two
    return {"question": f"What is {text}? Give the result as \\boxed{{result}}.", "answer": found, "kind": kind}


def draw_with_tool(rng: random.Random, kind: str) -> Task:
    return {**draw(rng, kind), "tools": ["ipython"]}


def demonstrate(task: Task) -> list[Part]:
    return [answer(task["answer"])]


def demonstrate_with_tool(task: Task) -> list[Part]:
    code = task["question"].removeprefix("What is ").split("?")[0]
    return [call("ipython", "code", code), result(str(task["answer"])), answer(task["answer"])]


ARITHMETIC = TaskSet("arithmetic", TITLES, max_turns=1, has_sandbox=False, draw=draw, demonstrate=demonstrate)
ARITHMETIC_WITH_TOOL = TaskSet("arithmetic", TITLES, max_turns=3, has_sandbox=True, draw=draw_with_tool, demonstrate=demonstrate_with_tool)
