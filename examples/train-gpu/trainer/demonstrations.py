"""Scripted demonstrations for a short supervised warm-up. The prompt of each comes from the service, as the policy will see it; the rest
is written here in the form in which the service continues a conversation."""

from __future__ import annotations

from typing import Any, Sequence

from millrace import Client

from .policy import TrainRow
from .task_set import Part, Task, TaskSet


def make_demonstrations(client: Client, tokenizer: Any, task_set: TaskSet, tasks: Sequence[Task]) -> list[TrainRow]:
    """One short rollout for each task shows the ids of its prompt."""
    requests = [
        {"scenario": task_set.scenario, "task": task, "sampling": {"max_tokens": 1}, "limits": {"max_turns": 1}} for task in tasks
    ]
    accepted = client.submit(requests)
    ended = {one.id: one for one in client.results([one.id for one in accepted])}
    rows = []
    for one, task in zip(accepted, tasks):
        if ended[one.id].state != "done":
            raise RuntimeError(f"no prompt for a demonstration: rollout {one.id} is {ended[one.id].state}: {ended[one.id].failure}")
        segments = client.trajectory(one.id).segments
        first = next(index for index, segment in enumerate(segments) if segment.sampled)
        prompt = [int(id) for segment in segments[:first] for id in segment.token_ids]
        rows.append(to_row(tokenizer, prompt, task_set.demonstrate(task)))
    return rows


def to_row(tokenizer: Any, prompt: list[int], parts: Sequence[Part]) -> TrainRow:
    ids: list[int] = []
    mask: list[int] = []
    for text, sampled in parts:
        some = tokenizer.encode(text, add_special_tokens=False)
        ids += some
        mask += [sampled] * len(some)
    return TrainRow(prompt, ids, mask, [0.0] * len(ids), 1.0, 0)
