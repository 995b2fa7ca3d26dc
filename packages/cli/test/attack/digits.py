"""A verifier in Python that converts what isdigit() accepts; with `safe` it reads ASCII digits only."""

from __future__ import annotations

import re
from dataclasses import dataclass

from millrace.scenario import Rollout

name = "digits"


@dataclass
class Task:
    number: int
    safe: bool = False


def init(rollout: Rollout) -> str:
    return "Which number do I think of?"


def evaluate(rollout: Rollout) -> float:
    answer = rollout.end.answer.strip()
    if rollout.task.safe:
        return float(re.fullmatch(r"[0-9]{1,9}", answer) is not None and int(answer) == rollout.task.number)
    return float(int(answer) == rollout.task.number) if answer.isdigit() else 0.0
