"""Exports of rollouts for trainers and tools: make rows first, then convert the rows."""

from .atif import to_atif
from .jsonl import read_jsonl, write_jsonl
from .nemo_gym import to_nemo_gym
from .parquet import write_parquet
from .rows import Row, RowSource, to_rows
from .skyrl import to_skyrl
from .slime import to_slime
from .trl import reward_from_rollout, to_trl
from .verl import to_verl

__all__ = [
    "Row",
    "RowSource",
    "read_jsonl",
    "reward_from_rollout",
    "to_atif",
    "to_nemo_gym",
    "to_rows",
    "to_skyrl",
    "to_slime",
    "to_trl",
    "to_verl",
    "write_jsonl",
    "write_parquet",
]
