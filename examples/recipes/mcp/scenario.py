"""Questions about a stock that the agent answers with an MCP server in its own sandbox, next to this file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from millrace.scenario import Opening, Rollout

name = "stock"
sandbox: dict = {}
SERVER = Path(__file__).with_name("inventory.py").read_bytes()


@dataclass
class Task:
    item: str
    pieces: int


def init(rollout: Rollout) -> Opening:
    rollout.sandbox.write_file("/workspace/inventory.py", SERVER)
    question = f"How many {rollout.task.item} are in stock? Call finish with the number as the answer."
    return Opening(question, tools=[{"mcp": "inventory", "command": ["python3", "/workspace/inventory.py"]}, "finish"])


def evaluate(rollout: Rollout) -> float:
    return 1.0 if rollout.end.answer.strip() == str(rollout.task.pieces) else 0.0
