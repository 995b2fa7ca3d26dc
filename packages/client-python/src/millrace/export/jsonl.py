"""Rows as JSON lines for offline use: one flat record a line, read back exactly as written."""

from __future__ import annotations

import json
import os
from typing import Any, Iterable, Iterator, Union

from .rows import Row, tool_to_openai


def to_record(row: Row) -> dict[str, Any]:
    versions = row.policy_versions
    return {
        "rollout_id": row.rollout.id,
        "group": row.rollout.group,
        "scenario": row.rollout.scenario,
        "branch": row.branch,
        "reward": row.reward,
        "stop_reason": row.stop_reason,
        "policy_version_first": None if versions is None else versions.first,
        "policy_version_last": None if versions is None else versions.last,
        "prompt_ids": row.prompt_ids,
        "response_ids": row.response_ids,
        "response_mask": row.response_mask,
        "response_logprobs": row.response_logprobs,
        "provenances": row.provenances,
        "metadata": row.rollout.metadata,
        "score": row.score,
        "messages": row.messages,
        "tools": [tool_to_openai(one) for one in row.trajectory.tools],
        "task": row.task,
    }


def write_jsonl(path: Union[str, os.PathLike[str]], rows: Iterable[Row]) -> int:
    """Returns how many rows were written. An existing file is replaced."""
    count = 0
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(to_record(row), ensure_ascii=False, separators=(",", ":")) + "\n")
            count += 1
    return count


def read_jsonl(path: Union[str, os.PathLike[str]]) -> Iterator[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise ValueError(f"{os.fspath(path)}, line {number}: {error}") from error
