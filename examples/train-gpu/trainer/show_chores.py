"""Prints one held-out chore of each kind with its scripted demonstration, as `millrace try` takes them: one line of JSON each."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]

from trainer.chores import CHORES  # noqa: E402
from trainer.task_set import Part  # noqa: E402


def to_turn(text: str) -> dict[str, Any]:
    said = text.removesuffix("<|im_end|>")
    if not said.startswith("<tool_call>"):
        return {"text": said}
    return {"tool_calls": [json.loads(said.removeprefix("<tool_call>").removesuffix("</tool_call>"))]}


def to_output(part: Part) -> str:
    return part[0].removeprefix("\n<|im_start|>tool\n").split("<|im_end|>")[0]


if __name__ == "__main__":
    for task in CHORES.held_out(1):
        parts = CHORES.demonstrate(task)
        turns = [to_turn(text) for text, sampled in parts if sampled]
        outputs = [to_output(part) for part in parts if not part[1]]
        print(json.dumps({"task": task, "turns": turns, "outputs": outputs}))
