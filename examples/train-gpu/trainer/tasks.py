"""The tasks: five kinds of arithmetic, and small shell chores. A question is held out by its hash, so no run trains on it."""

from __future__ import annotations

import hashlib
import random
from typing import Any, Iterator

KINDS = ("add1", "add2", "sub2", "add3", "mul")
#: As they are named in pictures and reports.
TITLES = {"add1": "1-digit +", "add2": "2-digit +", "sub2": "2-digit −", "add3": "three numbers +", "mul": "1 × 2 digits"}

Task = dict[str, Any]


def draw_task(rng: random.Random, kind: str) -> Task:
    one, two, three = rng.randint(10, 99), rng.randint(10, 99), rng.randint(10, 99)
    if kind == "add1":
        one, two = rng.randint(0, 9), rng.randint(0, 9)
        text, answer = f"{one} + {two}", one + two
    elif kind == "add2":
        text, answer = f"{one} + {two}", one + two
    elif kind == "sub2":
        text, answer = f"{one} - {two}", one - two
    elif kind == "add3":
        text, answer = f"{one} + {two} + {three}", one + two + three
    else:
        one = rng.randint(2, 9)
        text, answer = f"{one} * {two}", one * two
    return {"question": f"What is {text}? Give the result as \\boxed{{result}}.", "answer": answer, "kind": kind}


def is_held_out(task: Task) -> bool:
    return hashlib.sha256(task["question"].encode()).digest()[0] % 5 == 0


def training_tasks(seed: int, tools: list[str]) -> Iterator[Task]:
    """Endless, each kind as often as the others, none of them held out."""
    rng = random.Random(f"train-{seed}")
    while True:
        for kind in KINDS:
            task = draw_task(rng, kind)
            while is_held_out(task):
                task = draw_task(rng, kind)
            yield {**task, "tools": tools}


def held_out_tasks(count: int, tools: list[str]) -> list[Task]:
    """The same for every run: up to `count` different questions of each kind. There are only 100 one-digit sums, so fewer of these."""
    tasks: list[Task] = []
    for kind in KINDS:
        rng = random.Random(f"held-out-{kind}")
        found: dict[str, Task] = {}
        for _ in range(4000):
            task = draw_task(rng, kind)
            if is_held_out(task) and len(found) < count:
                found.setdefault(task["question"], {**task, "tools": tools})
        tasks += found.values()
    return tasks
