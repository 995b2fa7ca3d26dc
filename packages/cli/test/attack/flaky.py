"""Verifiers whose verdict changes between runs: one tosses a coin, one fails now and then, and a steady one."""

from __future__ import annotations

from dataclasses import dataclass

from millrace.scenario import Rollout

name = "flaky"
runs = {"coin": 0, "crash": 0}


@dataclass
class Task:
    kind: str


def init(rollout: Rollout) -> str:
    return "Say anything."


def evaluate(rollout: Rollout) -> float:
    kind = rollout.task.kind
    if kind in runs and rollout.end.answer == "":
        runs[kind] += 1
        if runs[kind] % 2 == 0:
            if kind == "crash":
                raise RuntimeError("the licence server did not answer")
            return 0.5
    return 0.0
