"""What a caller submits: a rollout request with its sampling parameters and limits. Fields and defaults are those of the protocol."""

from __future__ import annotations

from typing import Any, Literal, Mapping, Sequence, TypedDict, Union


class StructuredOutputs(TypedDict, total=False):
    """What the text of a turn must match: exactly one of these."""

    #: A JSON Schema.
    json: Mapping[str, Any]
    regex: str
    #: The turn is exactly one of these texts.
    choice: Sequence[str]
    #: A grammar in GBNF, whose first rule is `root`.
    grammar: str


class Sampling(TypedDict, total=False):
    """How tokens are sampled. Every field is sent to the backend; those you omit have the defaults given here."""

    #: Default 1; 0 is greedy.
    temperature: float
    #: Default 1.
    top_p: float
    #: Default 0, which turns it off.
    top_k: int
    #: Default 0.
    min_p: float
    #: Default 1.
    repetition_penalty: float
    #: Default 0.
    presence_penalty: float
    #: Default 0.
    frequency_penalty: float
    #: The most tokens sampled in one turn; default 4096.
    max_tokens: int
    seed: int
    #: A turn ends when its text has one of these; their tokens stay in the trajectory.
    stop: Sequence[str]
    #: Tokens that end a turn, besides those of the model.
    stop_token_ids: Sequence[int]
    #: Whether the text that the scenario reads has what stopped the turn; default False. It changes no token.
    include_stop_str_in_output: bool
    #: The least tokens sampled in one turn; default 0.
    min_tokens: int
    #: What is added to the logits of these token ids, from -100 to 100. The ids are text, as in JSON.
    logit_bias: Mapping[str, float]
    structured_outputs: StructuredOutputs
    #: Record which experts each token was routed to. vLLM and SGLang only, if they were started to return them.
    routed_experts: bool
    #: Record which tokens each token was sampled from. Needs `top_k` of at least 1; SGLang, or vLLM with --return-sampling-mask.
    sampling_mask: bool


class Limits(TypedDict, total=False):
    """Limits of one rollout. Timeouts count only time spent inside a stage, never waiting for a slot, a backend or new weights."""

    #: Default 50.
    max_turns: int
    #: Prompt, sampled and tool tokens together; default 32768.
    max_context_tokens: int
    #: Default 300.
    init_timeout_s: float
    #: Default 1800.
    run_timeout_s: float
    #: Default 600.
    evaluate_timeout_s: float
    #: Default 60.
    tool_timeout_s: float
    #: How many times a retryable failure is retried; default 2.
    max_retries: int
    #: The agent stops as `loop` when this many turns in a row make the same calls; default: never.
    max_repeated_calls: int
    #: A rollout whose first token is more policy versions old than this starts again under the new weights.
    max_staleness: int


class _RequiredRolloutRequest(TypedDict):
    scenario: str
    #: Data only; the scenario validates it.
    task: Mapping[str, Any]


class _RequiredAgentOptions(TypedDict):
    name: str


class AgentOptions(_RequiredAgentOptions, total=False):
    """A harness with options."""

    #: The sampling parameters that its requests may set; default none.
    allow: Sequence[str]
    #: Which branches have the reward: "all", "last" or "weighted"; default "all".
    reward_rule: Literal["all", "last", "weighted"]


class RolloutRequest(_RequiredRolloutRequest, total=False):
    """One rollout to run: a task for a scenario."""

    #: Makes the submission idempotent. The client generates an id if you omit it.
    id: str
    #: Siblings share a group, so that a trainer can compare their rewards.
    group: str
    #: The harness that acts in the sandbox, such as \"codex\"; default: the turn loop of Millrace.
    agent: Union[str, AgentOptions]
    #: The date or time that chat templates write, as "2026-01-31" or "2026-01-31T09:00:00Z"; default: when the first of its group
    #: was created.
    date: str
    sampling: Sampling
    limits: Limits
    #: Work with a higher priority is started first; default 0.
    priority: int
    #: The labels that a machine must have to run it, such as {"gpu": "a100"}; default none.
    requires: Mapping[str, str]
    #: After which turns its state is kept, for forks: "none", the "last" one, or {"every": 4}; default "none".
    keep_checkpoints: Union[Literal["none", "last"], Mapping[Literal["every"], int]]
    #: Returned unchanged with the rollout.
    metadata: Mapping[str, Any]
