"""Which settings of a trainer reach the sampler. Every adapter has one table of them, below. What a table does not name, and what Millrace
cannot do, is refused by name: a setting that is dropped makes the ratios of the trainer wrong, and nothing would say so."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Optional, Sequence, cast

from millrace import Sampling

#: What a rollout request can ask for. A table may name more: those settings are refused until the service can do them.
FIELDS = frozenset(Sampling.__annotations__)
_WHOLE = frozenset({"max_tokens", "min_tokens", "seed", "top_k"})
#: Values of settings that change nothing.
_NEUTRAL: Mapping[str, Sequence[Any]] = {
    "do_sample": (True,),
    "ignore_eos": (False,),
    "length_penalty": (1,),
    "n": (1,),
}
_EMPTY: Sequence[Any] = ("", [], {}, ())


class TaskError(ValueError):
    """What the trainer sent cannot be run; the message names the field."""


class Settings:
    """`passed` names each setting of the trainer and the field that it becomes; None if there is no such field. `ignored` do not concern
    the sampler."""

    def __init__(self, trainer: str, passed: Mapping[str, Optional[str]], *, ignored: Iterable[str] = ()) -> None:
        self.trainer = trainer
        self.passed = passed
        self._ignored = frozenset(ignored)

    @property
    def reaching(self) -> dict[str, str]:
        """The settings that arrive, with their fields."""
        return {name: field for name, field in self.passed.items() if field in FIELDS and field is not None}

    @property
    def refused(self) -> list[str]:
        """The settings that the table names and that cannot be passed on."""
        return [name for name, field in self.passed.items() if field not in FIELDS]

    def read(self, given: Mapping[str, Any], *, within: str = "") -> Sampling:
        """Every setting counts. An absent or null one has Millrace's default."""
        found: dict[str, Any] = {}
        for name, value in given.items():
            field = self.passed.get(name)
            if value is None or name in self._ignored or (value is False and field in FIELDS):
                continue
            if field in FIELDS and field is not None:
                found[field] = _to_value(field, value)
            elif not _is_in(value, _EMPTY) and not _is_in(value, _NEUTRAL.get(name, ())):
                known = ", ".join(sorted(self.reaching))
                seen = f"sampling parameter {within + name!r} of {self.trainer} is {value!r}"
                raise TaskError(f"{seen}, which Millrace cannot pass to the sampler; it passes {known}")
        return cast(Sampling, found)

    def read_config(self, config: Any) -> Sampling:
        """Of a configuration that has many other settings, those that the table names."""
        return self.read({name: _get(config, name) for name in self.passed})


def merge_sampling(base: Sampling, wanted: Optional[Sampling]) -> Sampling:
    """What the trainer wants wins, but the smaller `max_tokens` counts: trainers name the longest response, a source the longest turn."""
    merged = cast(Sampling, without_nulls({**without_nulls(base), **without_nulls(wanted or {})}))
    if base.get("max_tokens") is not None:
        merged["max_tokens"] = min(base["max_tokens"], merged["max_tokens"])
    return merged


def without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Null is absent: tables of mixed rows (Arrow, Parquet, pandas) fill the gaps with it."""
    return {name: value for name, value in fields.items() if value is not None}


def _get(config: Any, name: str) -> Any:
    if hasattr(config, "get"):  # A dict, or a configuration of omegaconf, in which an unknown attribute may raise.
        return config.get(name)
    return getattr(config, name, None)


def _to_value(field: str, value: Any) -> Any:
    """Plain numbers, also of numpy's. vLLM writes a `top_k` of -1 for none."""
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, bool) or not isinstance(plain, (int, float)):
        return list(plain) if isinstance(plain, (tuple, set)) else plain
    if field == "top_k":
        return max(0, int(plain))
    return int(plain) if field in _WHOLE and plain == int(plain) else plain


def _is_in(value: Any, values: Sequence[Any]) -> bool:
    """False is not 0 here."""
    return any(type(value) is type(one) and value == one for one in values) or (
        isinstance(value, float) and any(type(one) is int and value == one for one in values)
    )


#: How the caller of an LLM server wants to be answered. Millrace calls it itself, and always records ids and logprobs.
_TRANSPORT = (
    "cache_salt",
    "detokenize",
    "logprobs",
    "model",
    "output_kind",
    "prompt_logprobs",
    "return_token_ids",
    "return_tokens_as_token_ids",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "stream",
    "top_logprobs",
)
_SAME: Mapping[str, str] = {name: name for name in sorted(FIELDS)}
#: What engines know and a rollout request may not yet.
_MORE: Mapping[str, str] = {name: name for name in ("include_stop_str_in_output", "logit_bias", "min_tokens", "stop", "stop_token_ids")}

#: The names of vLLM and of OpenAI's API, which most trainers use.
VLLM = Settings(
    "the trainer",
    {**_MORE, **_SAME, "max_completion_tokens": "max_tokens", "max_output_tokens": "max_tokens"},
    ignored=_TRANSPORT,
)
#: TRL's GRPOConfig and AsyncGRPOConfig. Its `generation_kwargs` are read with the names of vLLM.
TRL = Settings(
    "TRL",
    {
        "temperature": "temperature",
        "top_p": "top_p",
        "top_k": "top_k",
        "min_p": "min_p",
        "repetition_penalty": "repetition_penalty",
        "max_completion_length": "max_tokens",
        "vllm_structured_outputs_regex": None,
        "chat_template_kwargs": None,
    },
)
#: The sampling parameters that verl passes to an agent loop.
VERL = Settings(
    "verl",
    {
        **_MORE,
        **{name: name for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")},
        **{name: name for name in ("presence_penalty", "frequency_penalty", "max_tokens", "seed")},
    },
    ignored=_TRANSPORT,
)
#: What verl keeps in `actor_rollout_ref.rollout` besides, for all of its rollouts. Its `seed` is that of the engine.
VERL_CONFIG = Settings(
    "verl",
    {
        "repetition_penalty": "repetition_penalty",
        "response_length": "max_tokens",
        "enable_rollout_routing_replay": "routed_experts",
        "do_sample": None,
        "ignore_eos": None,
    },
)
#: SkyRL's `sampling_params`, as its configuration or as it makes them for vLLM: it always asks for one token at least.
SKYRL = Settings(
    "SkyRL",
    {
        **{name: name for name in ("logit_bias", "stop", "stop_token_ids")},
        **{name: name for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")},
        **{name: name for name in ("presence_penalty", "frequency_penalty", "max_tokens", "seed")},
        "max_generate_length": "max_tokens",
    },
    # It sends 1 and True with every call, whatever its configuration says.
    ignored={*_TRANSPORT, "min_tokens", "include_stop_str_in_output"},
)
#: The arguments of slime. `rollout_seed` shuffles its data.
SLIME = Settings(
    "slime",
    {
        "rollout_temperature": "temperature",
        "rollout_top_p": "top_p",
        "rollout_top_k": "top_k",
        "rollout_max_response_len": "max_tokens",
        "rollout_stop": "stop",
        "rollout_stop_token_ids": "stop_token_ids",
        "use_rollout_routing_replay": "routed_experts",
    },
)
#: `responses_create_params` of NeMo Gym. What describes the conversation is up to the scenario.
NEMO_GYM = Settings(
    "NeMo Gym",
    {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_tokens", "reasoning": None, "text": None},
    ignored=(*_TRANSPORT, "include", "input", "instructions", "metadata", "parallel_tool_calls", "store", "tool_choice", "tools", "user"),
)
