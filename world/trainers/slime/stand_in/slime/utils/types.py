"""The fields of slime's Sample that a rollout function fills."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


@dataclass
class Sample:
    """One training sample."""

    class Status(Enum):
        """How its generation ended."""

        PENDING = "pending"
        COMPLETED = "completed"
        TRUNCATED = "truncated"
        ABORTED = "aborted"
        FAILED = "failed"

    group_index: Any = None
    index: Any = None
    rollout_id: Any = None
    prompt: Any = ""
    tokens: list[int] = field(default_factory=list)
    response: str = ""
    response_length: int = 0
    reward: Any = None
    loss_mask: Any = None
    weight_versions: list[str] = field(default_factory=list)
    rollout_log_probs: Any = None
    remove_sample: bool = False
    status: Status = Status.PENDING
    metadata: dict[str, Any] = field(default_factory=dict)
    session_id: Any = None

    def get_reward_value(self, args: Any) -> Any:
        return self.reward
