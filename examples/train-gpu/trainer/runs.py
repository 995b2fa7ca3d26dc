"""Reads what train.py wrote: a folder with steps.jsonl, or such a file, packed or not."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass
from typing import Any, Callable, Sequence


@dataclass(frozen=True)
class Run:
    name: str
    options: dict[str, Any]
    steps: Sequence[dict[str, Any]]
    held_out: Sequence[dict[str, Any]]

    @property
    def step_s(self) -> float:
        return sum(float(one["step_s"]) for one in self.steps)

    @property
    def seconds(self) -> float:
        """The time of all steps, with the evaluations between them."""
        return sum(map(seconds_of, self.steps))

    def mean(self, value: Callable[[dict[str, Any]], Any]) -> float:
        """The mean over time of a number that each step has."""
        return sum((value(one) or 0.0) * seconds_of(one) for one in self.steps) / max(1e-9, self.seconds)

    def share(self, name: str) -> float:
        """The share of the steps' time that the trainer spent in one part of its work."""
        return sum(one["seconds"].get(name, 0.0) for one in self.steps) / max(1e-9, self.step_s)


def seconds_of(step: dict[str, Any]) -> float:
    """What was measured for a step was measured since the end of the step before it: an evaluation in between counts."""
    return float(step["step_s"]) + float(step["seconds"].get("evaluate", 0.0))


def read_run(path: str) -> Run:
    file_name = os.path.join(path, "steps.jsonl") if os.path.isdir(path) else path
    opened = gzip.open(file_name, "rt") if file_name.endswith(".gz") else open(file_name)
    with opened as file:
        lines = [json.loads(line) for line in file if line.strip()]
    name = os.path.basename(os.path.normpath(path)).split(".")[0]
    options = next(one["options"] for one in lines if one["event"] == "start")
    return Run(name, options, [one for one in lines if one["event"] == "step"], [one for one in lines if one["event"] == "held-out"])
