"""A batch and its groups as the service reports them: tasks sampled by groups of siblings until enough groups are informative."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from typing import Any, Literal, Mapping, Optional, Sequence, Union

from ..error import MillraceError, corrupt_error, error_from_body, show
from ..rollouts.rollout import PolicySpan, RolloutView
from ..trajectories.trajectory import Trajectory, trajectory_from_json, trajectory_to_json
from ..wire.codec import WireError, from_wire, to_wire

#: `met`: the target was delivered. `short`: the tasks or `max_groups` ran out first.
BatchState = Literal["open", "met", "short", "cancelled"]


@dataclass(frozen=True)
class Waste:
    """What was sampled and will not be delivered."""

    rollouts: int
    tokens: int
    seconds: float


@dataclass(frozen=True)
class TaskCounts:
    given: int
    begun: int
    closed: bool


@dataclass(frozen=True)
class BatchPause:
    reason: str
    failed_at: str


@dataclass(frozen=True)
class BatchView:
    """A batch: its state, how many groups are in which state, and what was wasted."""

    id: str
    series: Optional[str]
    state: BatchState
    scenario: str
    group_size: int
    target: int
    groups: Mapping[str, int]
    #: Groups taken over from an earlier batch of the series.
    carried: int
    tasks: TaskCounts
    informative_share: Optional[float]
    mean_reward: Optional[float]
    wasted: Mapping[str, Waste]
    created_at: str
    ended_at: Optional[str]
    metadata: Optional[Mapping[str, Any]]
    #: Groups failed without blame on their tasks: one at a time is tried until one succeeds.
    paused: Optional[BatchPause] = None
    #: Why the server that replied cannot draw from the task file.
    waiting: Optional[str] = None

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
class LostTrajectory:
    rollout_id: str
    #: `trajectory-missing` or `trajectory-corrupt`.
    error: MillraceError


@dataclass(frozen=True)
class GroupView(GroupHead):
    """A delivered group: exactly the siblings that count, each with its reward. `seq` numbers the groups of a batch from 1."""

    #: In the order of `rollouts`; None if the group was read with `trajectories=False`.
    trajectories: Optional[tuple[Trajectory, ...]] = None
    #: Rollouts that are not in `rollouts`, because the service could not read their trajectories.
    lost: tuple[LostTrajectory, ...] = ()


@dataclass(frozen=True)
class GroupPage:
    groups: tuple[GroupView, ...]
    next: int
    state: BatchState


@dataclass(frozen=True)
class AckReply:
    consumer: str
    through: int


@dataclass(frozen=True)
class _PageHead:
    groups: tuple[Any, ...]
    next: int
    state: BatchState


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
    places = ((f"{where}.trajectories[{index}]", one) for index, one in enumerate(trajectories))
    read = [lost_from_json(one, place) if "error" in one else trajectory_from_json(one, place) for place, one in places]
    if len(read) != len(head.rollouts):
        raise WireError(f"{where}: {len(read)} trajectories for {len(head.rollouts)} rollouts")
    return with_trajectories(GroupView(**fields), read)


def lost_from_json(value: Any, where: str = "LostTrajectory") -> LostTrajectory:
    error = error_from_body(value, 500)
    if error is None or not isinstance(value.get("rollout_id"), str):
        raise WireError(f"{where}: expected the id of a rollout and an error, not {show(value)}")
    return LostTrajectory(value["rollout_id"], error)


def with_trajectories(group: GroupView, read: Sequence[Union[Trajectory, LostTrajectory]]) -> GroupView:
    """The group with what was read for each of its rollouts. Those that are lost leave `rollouts` and `rewards`."""
    for rollout, one in zip(group.rollouts, read):
        if one.rollout_id != rollout.id or (isinstance(one, Trajectory) and one.attempt != rollout.attempt):
            raise corrupt_error(f"group {group.id} has a trajectory of rollout {one.rollout_id} in place of {rollout.id}'s")
    kept = [not isinstance(one, LostTrajectory) for one in read]
    return dataclasses.replace(
        group,
        rollouts=tuple(itertools.compress(group.rollouts, kept)),
        rewards=tuple(itertools.compress(group.rewards, kept)),
        trajectories=tuple(one for one in read if isinstance(one, Trajectory)),
        lost=tuple(one for one in read if isinstance(one, LostTrajectory)),
    )


def group_to_json(group: GroupView) -> dict[str, Any]:
    wire: dict[str, Any] = to_wire(dataclasses.replace(group, trajectories=None, lost=()))
    if group.trajectories is not None:
        wire["trajectories"] = [trajectory_to_json(one) for one in group.trajectories]
    return wire
