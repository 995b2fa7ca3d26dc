"""What adapters share that serve a trainer one rollout at a time: runs, sampling parameters, the trainer's own LLM servers."""

from ..settings import TaskError
from .backends import TrainerBackends
from .requests import to_request, to_sampling
from .runs import RolloutRuns, describe_failure

__all__ = ["RolloutRuns", "TaskError", "TrainerBackends", "describe_failure", "to_request", "to_sampling"]
