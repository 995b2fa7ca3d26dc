"""Asks for every sampling setting of an adapter's table with a value that is not its default, so that a test can look for it at the LLM
server."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping

from millrace_trainers import Settings, TaskError

#: For each field of a rollout request. A new field of the service is part of the table in the docs as soon as it has a value here.
VALUES: Mapping[str, Any] = {
    "temperature": 0.5, "top_p": 0.9, "top_k": 20, "min_p": 0.05, "repetition_penalty": 1.1, "presence_penalty": 0.2,
    "frequency_penalty": 0.3, "max_tokens": 900, "seed": 11, "stop": ["never written"], "stop_token_ids": [7], "min_tokens": 2,
    "include_stop_str_in_output": True, "logit_bias": {"5": -1},
}  # fmt: skip
#: What an adapter cannot know, besides what its table names.
UNKNOWN = "a_setting_of_tomorrow"


def choose_values(table: Settings, *, without: Iterable[str] = ()) -> dict[str, Any]:
    """Settings by their names in the trainer."""
    return {name: VALUES[field] for name, field in table.reaching.items() if field in VALUES and name not in without}


def to_asked(table: Settings, given: Mapping[str, Any], *, within: str = "") -> dict[str, Any]:
    """For each setting, the field that should arrive, and its value."""
    return {f"{within}{name}": [table.reaching[name], value] for name, value in given.items()}


def find_refusals(table: Settings, read: Callable[[dict[str, Any]], Any], *, open_names: bool = True) -> dict[str, str]:
    """What the adapter says to each setting that it cannot pass on; with `open_names`, also to one that it does not know."""
    found: dict[str, str] = {}
    for name in [*table.refused, *([UNKNOWN] if open_names else [])]:
        try:
            read({name: ["x"]})
        except TaskError as error:
            found[name] = str(error)
    return found
