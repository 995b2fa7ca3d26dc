"""Rollouts for these tests, as the service reports them: with branches, with a cut turn, without a reward."""

from __future__ import annotations

from array import array
from typing import Any, Optional

from millrace import PolicySpan, RolloutView, Segment, SegmentHead, Trajectory

from millrace_trainers import Sampled


def make_rollout(id: str, reward: Optional[float], group: Optional[str] = "g") -> RolloutView:
    state: Any = "failed" if reward is None else "done"
    return RolloutView(
        id=id, scenario="s", group=group, state=state, attempt=1, retries=0, losses=0, worker=None, reward=reward, result=None,
        failure=None, failures=(), created_at="2026-01-01T00:00:00Z", ended_at="2026-01-01T00:00:01Z", metadata=None,
    )  # fmt: skip


def make_segment(kind: Any, ids: list[int], **head: Any) -> Segment:
    logprobs = [-0.5 * one for one in range(1, len(ids) + 1)] if kind == "sampled" else []
    return Segment(SegmentHead(kind=kind, text="", messages=(), **{"turn": 0, **head}), array("i", ids), array("f", logprobs))


def make_sampled(id: str, reward: Optional[float], segments: list[Segment], group: Optional[str] = "g") -> Sampled:
    return Sampled(make_rollout(id, reward, group), Trajectory(id, 1, "m", (), tuple(segments)))


def make_plain(id: str, reward: Optional[float], group: Optional[str] = "g") -> Sampled:
    version = PolicySpan(3, 3)
    sampled = make_segment("sampled", [3, 4], turn=1, policy_versions=version)
    return make_sampled(id, reward, [make_segment("prompt", [1, 2]), sampled], group)


def make_branched(id: str, reward: Optional[float], group: Optional[str] = "g") -> Sampled:
    """Two turns; the second starts a branch."""
    return make_sampled(
        id,
        reward,
        [
            make_segment("prompt", [1, 2]),
            make_segment("sampled", [3, 4], turn=1),
            make_segment("prompt", [1, 2, 9], turn=1, branch=1),
            make_segment("sampled", [5], turn=2, branch=1),
        ],
        group,
    )
