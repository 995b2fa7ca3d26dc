"""What a trainer sends with a task, as a rollout request. What Millrace would not do is refused by name, never dropped."""

from __future__ import annotations

from typing import Any, Mapping, Optional, cast

from millrace import Limits, RolloutRequest, Sampling

from ..settings import VLLM, Settings, TaskError, without_nulls


def to_sampling(given: Mapping[str, Any], settings: Settings = VLLM) -> Sampling:
    """Sampling parameters in OpenAI's or vLLM's names, also inside `extra_body`; those outside win."""
    inner = given.get("extra_body") or {}
    outer = {name: value for name, value in given.items() if name != "extra_body"}
    return {**settings.read(inner, within="extra_body."), **settings.read(outer)}


def to_request(
    task: Mapping[str, Any],
    *,
    scenario: Optional[str] = None,
    sampling: Optional[Mapping[str, Any]] = None,
    settings: Settings = VLLM,
) -> RolloutRequest:
    """`task` is either a line of a task file of Millrace, {"scenario": …, "task": {…}} with `sampling`, `limits`, `group` and so on, or,
    if `scenario` is given, the task itself. `sampling` is what the trainer asks for, in the names of `settings`; it wins
    over the line's."""
    whole = isinstance(task.get("scenario"), str) and isinstance(task.get("task"), Mapping)
    if not whole and scenario is None:
        raise TaskError(f"expected a task with the fields scenario and task, found {', '.join(sorted(task)) or 'none'}")
    line: Mapping[str, Any] = task if whole else {"scenario": scenario, "task": task}
    request: RolloutRequest = {"scenario": line["scenario"], "task": line["task"]}
    for name in ("id", "group", "metadata"):
        if line.get(name) is not None:
            request[name] = line[name]  # type: ignore[literal-required]
    if line.get("priority") is not None:
        request["priority"] = line["priority"]
    if line.get("limits") is not None:
        request["limits"] = cast(Limits, without_nulls(line["limits"]))
    wanted = {**without_nulls(line.get("sampling") or {}), **to_sampling(sampling or {}, settings)}
    if wanted:
        request["sampling"] = cast(Sampling, wanted)
    return request
