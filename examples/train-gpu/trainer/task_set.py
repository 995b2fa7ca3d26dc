"""What train.py trains on: a kind of task has a scenario, training tasks without end, and held-out tasks that no run trains on."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Mapping, Sequence

Task = dict[str, Any]
#: Text, and whether the policy says it (1) or the service adds it (0).
Part = tuple[str, int]


@dataclass(frozen=True)
class TaskSet:
    #: The name of the scenario, and its file next to train.py.
    scenario: str
    #: The kinds of task, with their names in pictures and reports.
    titles: Mapping[str, str]
    max_turns: int
    has_sandbox: bool
    draw: Callable[[random.Random, str], Task]
    #: A scripted solution for the warm-up: everything after the prompt.
    demonstrate: Callable[[Task], Sequence[Part]]

    @property
    def kinds(self) -> list[str]:
        return list(self.titles)

    def training(self, seed: int) -> Iterator[Task]:
        """Endless, each kind as often as the others, none of them held out."""
        rng = random.Random(f"train-{seed}")
        while True:
            for kind in self.kinds:
                task = self.draw(rng, kind)
                while is_held_out(task):
                    task = self.draw(rng, kind)
                yield task

    def held_out(self, count: int) -> list[Task]:
        """The same for every run: up to `count` different questions of each kind. There are only 100 one-digit sums, so fewer of these."""
        tasks: list[Task] = []
        for kind in self.kinds:
            rng = random.Random(f"held-out-{kind}")
            found: dict[str, Task] = {}
            for _ in range(4000):
                task = self.draw(rng, kind)
                if is_held_out(task) and len(found) < count:
                    found.setdefault(task["question"], task)
            tasks += found.values()
        return tasks


def is_held_out(task: Task) -> bool:
    """By its question alone: whatever else a task has, a question that is asked in training is never asked in an evaluation."""
    return hashlib.sha256(task["question"].encode()).digest()[0] % 5 == 0


def call(tool: str, argument: str, value: str) -> Part:
    """A tool call in the format of the service's default parser. `value` needs no escapes in JSON."""
    return (f'<tool_call>\n{{"name": "{tool}", "arguments": {{"{argument}": "{value}"}}}}\n</tool_call><|im_end|>', 1)


def result(text: str) -> Part:
    return (f"\n<|im_start|>tool\n{text}<|im_end|>\n<|im_start|>assistant\n", 0)


def answer(text: object) -> Part:
    return (f"\\boxed{{{text}}}<|im_end|>", 1)
