"""What passes between rLLM's engine and a remote runtime, with the documented fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

from rllm.workflows.workflow import TerminationReason


@dataclass
class TaskSubmission:
    task: dict[str, Any]
    session_id: str
    task_id: str
    inference_url: str


@dataclass
class RemoteTaskResult:
    finished: bool
    session_id: str
    task_id: str = ""
    reward: Optional[float] = None
    error: Optional[str] = None
    termination_reason: Optional[TerminationReason] = None
    elapsed: float = 0.0
    raw_result: Optional[dict[str, Any]] = None
    metadata: dict[str, Any] = field(default_factory=dict)
