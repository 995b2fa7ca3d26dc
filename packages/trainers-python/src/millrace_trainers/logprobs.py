"""Whether logprobs are those of the distribution that a token was sampled from. A trainer computes the ratio of new to old probabilities at
its own temperature: with `raw` logprobs of tokens that were sampled at another temperature, every ratio is wrong."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Mapping, Optional

from millrace import Trajectory

#: `check`: where sampling reshaped the distribution, raw ones are refused and unknown ones warned about. `any`: nothing uses them.
LogprobsRule = Literal["check", "any"]
#: Fields that reshape the distribution, with the value that does not. Truncation (top_p, top_k, min_p) is left out by trainers too.
_SHAPES: Mapping[str, float] = {"temperature": 1, "repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0}


class LogprobsError(ValueError):
    """The engine's logprobs do not show how the tokens were sampled."""


def check_logprobs(trajectory: Optional[Trajectory], rule: LogprobsRule = "check") -> None:
    for one in () if trajectory is None or rule == "any" else trajectory.provenances:
        changed = _find_changes(one.sampling)
        if not changed or one.logprobs_mode == "processed":
            continue
        assert trajectory is not None
        engine = " ".join(part for part in (one.engine, one.engine_version) if part) or "its engine"
        seen = f"rollout {trajectory.rollout_id} was sampled by {engine} with {', '.join(changed)}"
        if one.logprobs_mode == "raw":
            raise LogprobsError(
                f"{seen}, and its logprobs are raw: they do not show this, so the ratios of a trainer would be wrong. Start vLLM with "
                "--logprobs-mode processed_logprobs; or, if the trainer computes old logprobs itself, pass logprobs='any' to RolloutSource "
                "or set MILLRACE_LOGPROBS=any"
            )
        warnings.warn(f"{seen}, and it is unknown whether its logprobs show this: join the backend with logprobs_mode", stacklevel=3)


def _find_changes(sampling: Mapping[str, Any]) -> list[str]:
    return [f"{name} {sampling[name]}" for name, neutral in _SHAPES.items() if sampling.get(name, neutral) != neutral]
