"""What the ledger of the service holds for rollouts, read apart from any adapter, to compare a trainer's batch with."""

from __future__ import annotations

from typing import Any, Iterable

from millrace import Client, MillraceError


def read_experts(client: Client, id: str, branch: int) -> list[list[int]]:
    """For each token of a branch but the last, the experts of all layers in a row; empty if none were recorded."""
    rows: list[list[int]] = []
    for segment in client.trajectory(id).segments:
        experts = segment.routed_experts
        if segment.head.branch == branch and experts is not None:
            width = experts.shape[0] * experts.shape[1]
            ids = list(experts.ids)
            rows[experts.first :] = [ids[at : at + width] for at in range(0, len(ids), width)]
    return rows


def read_ledger(client: Client, ids: Iterable[str]) -> dict[str, Any]:
    """For each rollout its reward and, for each branch, all ids and those that were sampled with their logprobs."""
    found: dict[str, Any] = {}
    for one in ids:
        view = client.get(one)
        try:
            segments = client.trajectory(one, form="json").segments
        except MillraceError:
            segments = ()
        branches: dict[int, dict[str, list[Any]]] = {}
        for segment in segments:
            branch = branches.setdefault(segment.head.branch, {"ids": [], "sampled": [], "logprobs": []})
            branch["ids"] += list(segment.token_ids)
            if segment.sampled:
                branch["sampled"] += list(segment.token_ids)
                branch["logprobs"] += list(segment.logprobs)
        found[one] = {"reward": view.reward, "group": view.group, "branches": list(branches.values())}
    return found
