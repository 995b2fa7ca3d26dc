"""Batches: a stream of tasks, each sampled by a group of siblings, until enough groups are informative for one training step."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Mapping, Optional

from .rollout import PolicySpan, RolloutView
from .trajectory import Trajectory, trajectory_from_json, trajectory_to_json
from .wire import WireError, from_wire, to_wire


@dataclass(frozen=True)
class Waste:
    rollouts: int
    tokens: int
    seconds: float


@dataclass(frozen=True)
class TaskCounts:
    given: int
    begun: int
    closed: bool


@dataclass(frozen=True)
class BatchView:
    """`state` is open, met, short or cancelled."""

    id: str
    series: Optional[str]
    state: str
    scenario: str
    group_size: int
    target: int
    groups: Mapping[str, int]
    carried: int
    tasks: TaskCounts
    informative_share: Optional[float]
    mean_reward: Optional[float]
    wasted: Mapping[str, Waste]
    created_at: str
    ended_at: Optional[str]
    metadata: Optional[Mapping[str, Any]]

    @property
    def ended(self) -> bool:
        return self.state != "open"


@dataclass(frozen=True)
class BatchList:
    batches: tuple[BatchView, ...]
    next: Optional[str]


@dataclass(frozen=True)
class GroupHead:
    seq: int
    id: str
    batch: str
    task_index: int
    task: Mapping[str, Any]
    rewards: tuple[float, ...]
    rollouts: tuple[RolloutView, ...]
    policy_versions: Optional[PolicySpan]
    carried: bool
    delivered_at: str


@dataclass(frozen=True)
class GroupView(GroupHead):
    """A delivered group: exactly the siblings that count, each with its reward. `seq` is its place in the stream of its batch."""

    #: In the order of `rollouts`, where they were asked for.
    trajectories: Optional[tuple[Trajectory, ...]] = None


@dataclass(frozen=True)
class GroupPage:
    groups: tuple[GroupView, ...]
    next: int
    state: str


@dataclass(frozen=True)
class AckReply:
    consumer: str
    through: int


@dataclass(frozen=True)
class _PageHead:
    groups: tuple[Any, ...]
    next: int
    state: str


def group_page_from_json(value: Any) -> GroupPage:
    page = from_wire(_PageHead, value, "GroupPage")
    groups = tuple(group_from_json(one, f"GroupPage.groups[{index}]") for index, one in enumerate(page.groups))
    return GroupPage(groups, page.next, page.state)


def group_page_to_json(page: GroupPage) -> dict[str, Any]:
    return {"groups": [group_to_json(one) for one in page.groups], "next": page.next, "state": page.state}


def group_from_json(value: Any, where: str = "GroupView") -> GroupView:
    head = from_wire(GroupHead, value, where)
    fields = {field.name: getattr(head, field.name) for field in dataclasses.fields(head)}
    trajectories = value.get("trajectories")
    if trajectories is None:
        return GroupView(**fields)
    read = tuple(trajectory_from_json(one, f"{where}.trajectories[{index}]") for index, one in enumerate(trajectories))
    if len(read) != len(head.rollouts):
        raise WireError(f"{where}: {len(read)} trajectories for {len(head.rollouts)} rollouts")
    return GroupView(**fields, trajectories=read)


def group_to_json(group: GroupView) -> dict[str, Any]:
    wire: dict[str, Any] = to_wire(dataclasses.replace(group, trajectories=None))
    if group.trajectories is not None:
        wire["trajectories"] = [trajectory_to_json(one) for one in group.trajectories]
    return wire
