"""What a caller requests with a batch. Fields and defaults are those of the protocol."""

from __future__ import annotations

from typing import Any, Literal, Mapping, Sequence, TypedDict, Union

from ..rollouts.request import AgentOptions, Limits, Sampling


class _RequiredRewardsDiffer(TypedDict):
    rule: Literal["rewards-differ"]


class RewardsDiffer(_RequiredRewardsDiffer, total=False):
    """A group is informative if two of its rewards differ by more than `tolerance`, by default 1e-6."""

    tolerance: float


class MeanWithin(TypedDict):
    """A group is informative if its mean reward lies strictly between `above` and `below`."""

    rule: Literal["mean-within"]
    above: float
    below: float


class AnyGroup(TypedDict):
    """Every group with enough rewards is informative."""

    rule: Literal["any"]


InformativeRule = Union[RewardsDiffer, MeanWithin, AnyGroup]


class _RequiredTaskSource(TypedDict):
    #: A name from `sampling.taskFiles` of the service's configuration.
    file: str


class TaskSource(_RequiredTaskSource, total=False):
    """A task file that the service reads, one JSON object a line."""

    #: Batches with the same cursor continue where the previous one stopped. Default: the series, otherwise the file.
    cursor: str
    #: A different order in each round through the file. Default: the order of the file.
    shuffle_seed: int
    #: The most rounds through the file. Default: no limit.
    rounds: int


class _RequiredWebhook(TypedDict):
    url: str


class Webhook(_RequiredWebhook, total=False):
    """Where the service sends delivered groups."""

    #: Signs each body: X-Millrace-Signature is sha256=HMAC. Never returned.
    secret: str


class _RequiredBatchRequest(TypedDict):
    scenario: str
    #: How many siblings of each task are sampled.
    group_size: int
    #: How many informative groups are delivered.
    target: int


class BatchRequest(_RequiredBatchRequest, total=False):
    """A batch: tasks sampled in groups until `target` groups are informative. Give it `tasks`, a `source`, or append tasks later."""

    #: Makes the request idempotent. The client generates an id if you omit it.
    id: str
    #: The training run. Surplus groups of one batch are kept for the next batch of its series.
    series: str
    tasks: Sequence[Mapping[str, Any]]
    source: TaskSource
    #: No more tasks will be appended. Default: true if there are tasks or a source.
    closed: bool
    #: The harness that acts in the sandbox, such as \"codex\"; default: the turn loop of Millrace.
    agent: Union[str, AgentOptions]
    #: The date or time that chat templates write, as "2026-01-31" or "2026-01-31T09:00:00Z"; default: when a group begins.
    date: str
    sampling: Sampling
    limits: Limits
    #: Default: rewards-differ.
    informative: InformativeRule
    #: Deliver an informative group once it has this many rewards, and stop its stragglers. Default: group_size.
    min_samples: int
    #: A group that gets fewer rewards, because siblings failed, is not delivered. Default: min_samples, or half of group_size.
    min_rewards: int
    #: Stop a group if its first rewards, this many, are uninformative.
    give_up_after: int
    #: Sample a sibling that failed without a reward again, or leave it out. Default: replace.
    failures: Literal["replace", "exclude"]
    #: What a failure that the policy caused counts as: as any other failure, or as a sample with the reward `penalty`. Default: resample.
    policy_failures: Literal["resample", "penalise"]
    #: The reward of a penalised sample; default 0.
    penalty: float
    #: The most replacements in one group; default 4.
    max_replacements: int
    #: The most groups to start; the batch then ends short of its target.
    max_groups: int
    #: The most groups sampled at the same time. Default: as the stages have room.
    max_open_groups: int
    #: The policy version that this batch trains. No group starts while the current version is more than max_staleness behind it.
    for_version: int
    #: The most policy versions between the first that sampled a group and the current one at its delivery; default 1.
    max_staleness: int
    #: What happens to unfinished siblings when the target is met; default stop.
    surplus: Literal["stop", "keep"]
    #: Work with a higher priority is started first; default 0.
    priority: int
    #: Its share of the workers, relative to other batches and to plain submissions, which have 1; default 1.
    weight: float
    #: The labels that a machine must have to run its rollouts, such as {"gpu": "a100"}; default none.
    requires: Mapping[str, str]
    webhook: Webhook
    #: Returned unchanged with the batch.
    metadata: Mapping[str, Any]
