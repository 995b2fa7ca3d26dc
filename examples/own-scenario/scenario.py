"""A scenario in one Python file: the agent gets a CSV file and is asked for the sum of a column. `millrace serve --scenarios scenario.py`
serves it as `column-sum`; docs/scenarios.md explains every part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from millrace.scenario import Opening, Rollout, ScenarioError, Score, tool

FILE = "/workspace/data.csv"

name = "column-sum"
sandbox: dict = {}


@dataclass
class Task:
    rows: Annotated[list[list[float]], "The content of data.csv."]
    column: Annotated[int, "The column to sum, from 1."]


@tool
def preview(rollout: Rollout, lines: Annotated[int, "How many lines to show."] = 5) -> str:
    """Show the first lines of data.csv."""
    result = rollout.sandbox.exec(["head", "-n", str(lines), FILE], timeout_s=10)
    return result.stdout if result.exit_code == 0 else "data.csv cannot be read"


def init(rollout: Rollout) -> Opening:
    rows = [",".join(f"{cell:g}" for cell in row) for row in rollout.task.rows]
    rollout.sandbox.write_file(FILE, "\n".join(rows) + "\n")
    question = f"What is the sum of column {rollout.task.column} of data.csv? Call finish with the number as the answer."
    return Opening(question, tools=["bash", preview, "finish"])


def evaluate(rollout: Rollout) -> Score:
    column = rollout.task.column - 1
    if any(len(row) <= column for row in rollout.task.rows):
        raise ScenarioError("task", f"a row has no column {rollout.task.column}")
    total = sum(row[column] for row in rollout.task.rows)
    try:
        right = float(rollout.end.answer) == total
    except ValueError:
        right = False
    return Score(1.0 if right else 0.0, {"sum": total, "answer": rollout.end.answer})
