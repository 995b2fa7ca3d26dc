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
    if kind == "coin" and rollout.end.answer == "":
        runs["coin"] += 1
        return 0.5 if runs["coin"] % 2 == 0 else 0.0
    if kind == "crash":
        runs["crash"] += 1
        if 2 < runs["crash"] < 6:  # long enough that it is tried again, and for an agent that did nothing
            raise RuntimeError("the licence server did not answer")
    return 0.0
