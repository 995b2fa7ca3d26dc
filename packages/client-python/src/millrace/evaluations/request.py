"""What a caller requests with an evaluation. Fields and defaults are those of the protocol."""

from __future__ import annotations

from typing import Any, Mapping, Sequence, TypedDict, Union

from ..rollouts.request import AgentOptions, Limits, Sampling


class _RequiredEvaluationRequest(TypedDict):
    scenario: str
    tasks: Sequence[Mapping[str, Any]]


class EvaluationRequest(_RequiredEvaluationRequest, total=False):
    """An evaluation: every task is sampled `n` times, and nothing is filtered."""

    #: Makes the request idempotent. The client generates an id if you omit it.
    id: str
    #: How many samples each task gets; default 1.
    n: int
    #: The harness that acts in the sandbox, such as \"codex\"; default: the turn loop of Millrace.
    agent: Union[str, AgentOptions]
    #: The date or time that chat templates write, as "2026-01-31" or "2026-01-31T09:00:00Z"; default: when a group begins.
    date: str
    sampling: Sampling
    limits: Limits
    #: A sample is correct if its reward is at least this. Default: the highest reward of its task, 1 in most scenarios.
    correct_at: float
    #: Work with a higher priority is started first; default 0.
    priority: int
    #: Its share of the workers, relative to batches, other evaluations and plain submissions; default 1.
    weight: float
    #: The labels that a machine must have to run its samples, such as {"gpu": "a100"}; default none.
    requires: Mapping[str, str]
    #: Returned unchanged with the evaluation.
    metadata: Mapping[str, Any]
