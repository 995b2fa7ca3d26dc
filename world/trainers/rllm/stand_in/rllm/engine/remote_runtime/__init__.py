"""The factory of rLLM's remote runtimes: it knows its own two by name, and refuses others."""

from __future__ import annotations

from typing import Any


def create_remote_runtime(config: Any, exp_id: str = "", model_id: str = "") -> Any:
    raise ValueError(f"Unknown remote runtime backend: {config.backend!r}")
