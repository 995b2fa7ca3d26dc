"""Tinker: rollouts as a trajectory group of its cookbook. A rollout is one trajectory, whatever its branches, so that it counts once in
its group; one without a reward is left out and listed among the group's errors."""

from __future__ import annotations

from typing import Iterable

from millrace.export import to_rows

from .rollouts import Sampled
from .serving import describe_failure
from .turns import Turn, to_turns
from .versions import trainer_imports

with trainer_imports("tinker"):
    import tinker
    from tinker_cookbook.completers import TokensWithLogprobs
    from tinker_cookbook.rl.types import RolloutError, Trajectory, TrajectoryGroup, Transition


def to_trajectory_group(sampled: Iterable[Sampled]) -> TrajectoryGroup:
    """`sampled` are the siblings of one task, as `RolloutSource.run` returns them. `compute_advantages` and `assemble_training_data` take
    the group; a branch starts a new datum there."""
    trajectories: list[Trajectory] = []
    rewards: list[float] = []
    errors: list[RolloutError] = []
    for one in sampled:
        rollout = one.rollout
        rows = [] if rollout.reward is None or one.trajectory is None else to_rows((rollout, one.trajectory), skip_empty=True)
        if not rows or rollout.reward is None:
            errors.append(RolloutError(*describe_failure(rollout)))
            continue
        turns = [turn for row in rows for turn in to_turns(row)]
        final = tinker.ModelInput.from_ints(rows[-1].prompt_ids + rows[-1].response_ids)
        trajectories.append(Trajectory([_to_transition(turn) for turn in turns], final, stop_reason=rows[-1].stop_reason))
        rewards.append(rollout.reward)
    return TrajectoryGroup(trajectories, rewards, [{} for _ in rewards], errors)


def _to_transition(turn: Turn) -> Transition:
    """Rewards are those of the group: a transition has none of its own."""
    action = TokensWithLogprobs(turn.completion_ids, turn.logprobs, "length" if turn.finish_reason == "length" else "stop")
    return Transition(tinker.ModelInput.from_ints(turn.prompt_ids), action, reward=0.0, episode_done=turn.last)
