"""The trainer's client of Millrace: what trainers import, name by name."""

from .async_client import AsyncClient
from .batch import AckReply, BatchView, GroupView, TaskCounts, Waste
from .client import Client
from .error import MillraceError
from .policy import PolicyView
from .rollout import Accepted, Failure, PolicySpan, RolloutResult, RolloutView, Timings, TokenCounts
from .routed_experts import RoutedExperts
from .service import BackendView, Event, ServiceStatus, WorkerView
from .stop import Stop
from .trajectory import Message, Segment, SegmentHead, ToolCall, ToolSpec, Trajectory, trajectory_from_json, trajectory_to_json
from .trajectory_binary import trajectory_from_binary, trajectory_to_binary
from .wire import WireError

__version__ = "0.2.0"

__all__ = [
    "Accepted",
    "AckReply",
    "AsyncClient",
    "BackendView",
    "BatchView",
    "Client",
    "Event",
    "Failure",
    "GroupView",
    "Message",
    "MillraceError",
    "PolicySpan",
    "PolicyView",
    "RolloutResult",
    "RolloutView",
    "RoutedExperts",
    "Segment",
    "SegmentHead",
    "ServiceStatus",
    "Stop",
    "TaskCounts",
    "Timings",
    "TokenCounts",
    "ToolCall",
    "ToolSpec",
    "Trajectory",
    "Waste",
    "WireError",
    "WorkerView",
    "trajectory_from_binary",
    "trajectory_from_json",
    "trajectory_to_binary",
    "trajectory_to_json",
]
