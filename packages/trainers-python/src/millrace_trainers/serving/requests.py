"""What a trainer sends with a task, as a rollout request. What Millrace would not do is refused by name, never dropped."""

from __future__ import annotations

from typing import Any, Mapping, Optional, cast

from millrace import Limits, RolloutRequest, Sampling

_FIELDS = frozenset(Sampling.__annotations__)
_NAMES = {"max_completion_tokens": "max_tokens", "max_output_tokens": "max_tokens"}
#: How the trainer wants its own LLM calls answered. Millrace makes these calls itself, and always records ids and logprobs.
_TRANSPORT = frozenset(
    {
        "cache_salt",
        "logprobs",
        "model",
        "prompt_logprobs",
        "return_token_ids",
        "return_tokens_as_token_ids",
        "skip_special_tokens",
        "spaces_between_special_tokens",
        "stream",
        "top_logprobs",
    }
)
#: Values of other parameters that change nothing.
_NEUTRAL: Mapping[str, Any] = {"min_tokens": 0, "n": 1, "reasoning_effort": None, "stop": None, "logit_bias": None}


class TaskError(ValueError):
    """What the trainer sent cannot be run; the message names the field."""


def to_sampling(given: Mapping[str, Any]) -> Sampling:
    """Sampling parameters in OpenAI's or vLLM's names. An absent or null one has Millrace's default; `top_k: -1` turns it off, as in
    vLLM."""
    found: dict[str, Any] = {}
    for layer in (given.get("extra_body") or {}, given):
        for name, value in layer.items():
            field = _NAMES.get(name, name)
            if value is None or name == "extra_body" or field in _TRANSPORT:
                continue
            if field in _FIELDS:
                found[field] = 0 if field == "top_k" and value == -1 else value
            elif field not in _NEUTRAL or value not in (_NEUTRAL[field], [], {}):
                known = ", ".join(sorted(_FIELDS))
                raise TaskError(f"sampling parameter {name!r} is {value!r}, which Millrace cannot do; known are {known}")
    return cast(Sampling, found)


def to_request(
    task: Mapping[str, Any], *, scenario: Optional[str] = None, sampling: Optional[Mapping[str, Any]] = None
) -> RolloutRequest:
    """`task` is either a line of a task file of Millrace, {"scenario": …, "task": {…}} with `sampling`, `limits`, `group` and so on, or,
    if `scenario` is given, the task itself. `sampling` is what the trainer asks for; it wins over the line's."""
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
        request["limits"] = cast(Limits, line["limits"])
    wanted = {**(line.get("sampling") or {}), **to_sampling(sampling or {})}
    if wanted:
        request["sampling"] = cast(Sampling, wanted)
    return request
