"""What the functions of a scenario return, and how the agent's part ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence


@dataclass(frozen=True)
class Opening:
    """What the agent starts with. `messages` is one user message as text, or a list of messages. `tools` are names of tools,
    functions marked with `@tool`, and MCP servers as `{"mcp": "name", "command": [...]}`; without it, the `tools` of the file."""

    messages: Any
    tools: Optional[Sequence[Any]] = None
    #: Sampling parameters from the first turn on, until `rollout.sample` sets others. They replace those of the submission.
    sampling: Optional[Mapping[str, Any]] = None


@dataclass(frozen=True)
class Append:
    """Given to `rollout.sample` to continue the agent's own turn with a text, after a stop string ended it."""

    text: str


@dataclass(frozen=True)
class Finish:
    """Returned by a tool, or by `run`, to end the agent's part with this answer."""

    answer: str = ""


@dataclass(frozen=True)
class Score:
    reward: float
    #: Stored as `result.score`; anything that JSON can hold.
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class End:
    """How the agent's part ended: why, and with which answer (of `finish`, or the text of the last turn)."""

    stop_reason: str
    answer: str


def to_messages(given: Any) -> list[dict[str, Any]]:
    """Text is one user message; everything else is a list of messages."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if isinstance(given, dict):
        return [given]
    if isinstance(given, (list, tuple)) and all(isinstance(one, dict) for one in given):
        return list(given)
    raise TypeError(f"messages are text, a message, or a list of messages, not {type(given).__name__}")


def to_score(given: Any) -> dict[str, Any]:
    if isinstance(given, Score):
        return {"reward": given.reward, "details": given.details}
    if isinstance(given, (bool, int, float)):
        return {"reward": float(given)}
    if isinstance(given, dict) and "reward" in given:
        return dict(given)
    raise TypeError(f"evaluate must return a number, Score(reward, details) or a dictionary with `reward`, not {given!r:.200}")
