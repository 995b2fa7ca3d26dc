"""A conversation in Python: the agent guesses a number, and the scenario answers each guess. It needs no tools and no sandbox."""

from __future__ import annotations

import re
from dataclasses import dataclass

from millrace.scenario import Rollout

name = "guess"


@dataclass
class Task:
    number: int
    most: int = 100


def init(rollout: Rollout) -> str:
    return f"I think of a whole number from 1 to {rollout.task.most}. Guess it: answer with a number only."


def run(rollout: Rollout) -> None:
    rollout.state["guesses"] = 0
    guess = rollout.sample()
    while True:
        rollout.state["guesses"] += 1
        if not re.fullmatch("[0-9]{1,9}", guess.strip()):  # isdigit() would accept ², and int() refuse it
            guess = rollout.sample("Answer with a number only.")
        elif int(guess) == rollout.task.number:
            return
        else:
            guess = rollout.sample("Higher." if int(guess) < rollout.task.number else "Lower.")


def evaluate(rollout: Rollout) -> float:
    found = rollout.end.answer.strip() == str(rollout.task.number)
    return 1 / rollout.state["guesses"] if found else 0.0
