"""The sampling settings of TRL's configurations, as Millrace understands them."""

from __future__ import annotations

from typing import Any

from millrace import Sampling

from ..settings import TRL, VLLM


def to_sampling(args: Any) -> Sampling:
    """Of a GRPOConfig or an AsyncGRPOConfig. As in TRL, `generation_kwargs` override its other settings."""
    return {**TRL.read_config(args), **VLLM.read(getattr(args, "generation_kwargs", None) or {}, within="generation_kwargs.")}
