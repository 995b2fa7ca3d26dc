"""The trainer's client of Millrace. These names are the public API, together with `millrace.export` and `millrace.dapo`."""

from .async_client import AsyncClient
from .batches.batch import AckReply, BatchState, BatchView, GroupView, LostTrajectory, TaskCounts, Waste
from .batches.request import AnyGroup, BatchRequest, InformativeRule, MeanWithin, RewardsDiffer, TaskSource, Webhook
from .client import Client
from .error import MillraceError, ServiceUnreachable
from .evaluations.evaluation import (
    Estimate,
    EvaluationFailure,
    EvaluationSample,
    EvaluationState,
    EvaluationTask,
    EvaluationView,
    PassEstimate,
    SampleCounts,
    SampleFailure,
)
from .evaluations.request import EvaluationRequest
from .rollouts.request import AgentOptions, Limits, RolloutRequest, Sampling, StructuredOutputs
from .rollouts.rollout import (
    Accepted,
    Blame,
    CancelOutcome,
    Continued,
    ForkOrigin,
    Forks,
    SavedTurn,
    Failure,
    PolicySpan,
    RolloutResult,
    RolloutState,
    RolloutView,
    Stage,
    StopReason,
    Timings,
    TokenCounts,
)
from .rollouts.gateways import Gateway
from .service.policy import PauseMode, PolicyState, PolicyView
from .service.machines import MachineView, WorkerSettings
from .service.status import BackendView, ClassView, Dialect, Event, LogprobsMode, ServiceStatus, WorkerView
from .service.trainer import LogprobMismatch, StoredSample, TrainerRun, TrainerSample, TrainerStepView, trainer_sample
from .stop import Stop
from .trajectories.binary import trajectory_from_binary, trajectory_to_binary
from .trajectories.routed_experts import RoutedExperts
from .trajectories.sampling_mask import SamplingMask
from .trajectories.trajectory import (
    Message,
    Provenance,
    Segment,
    SegmentHead,
    SegmentKind,
    ToolCall,
    ToolSpec,
    Trajectory,
    trajectory_from_json,
    trajectory_to_json,
)
from .version import __version__
from .wire.codec import WireError

__all__ = [
    "Accepted",
    "AckReply",
    "AgentOptions",
    "AnyGroup",
    "AsyncClient",
    "BackendView",
    "ClassView",
    "BatchRequest",
    "BatchState",
    "BatchView",
    "Blame",
    "CancelOutcome",
    "Client",
    "Continued",
    "ForkOrigin",
    "Forks",
    "SavedTurn",
    "Dialect",
    "Estimate",
    "EvaluationFailure",
    "EvaluationRequest",
    "EvaluationSample",
    "EvaluationState",
    "EvaluationTask",
    "EvaluationView",
    "Event",
    "Failure",
    "Gateway",
    "GroupView",
    "InformativeRule",
    "Limits",
    "LogprobMismatch",
    "LogprobsMode",
    "LostTrajectory",
    "MachineView",
    "MeanWithin",
    "Message",
    "MillraceError",
    "PassEstimate",
    "PauseMode",
    "PolicySpan",
    "PolicyState",
    "PolicyView",
    "Provenance",
    "RewardsDiffer",
    "RolloutRequest",
    "RolloutResult",
    "RolloutState",
    "RolloutView",
    "RoutedExperts",
    "SampleCounts",
    "SampleFailure",
    "Sampling",
    "SamplingMask",
    "Segment",
    "SegmentHead",
    "SegmentKind",
    "ServiceStatus",
    "ServiceUnreachable",
    "Stage",
    "Stop",
    "StoredSample",
    "StopReason",
    "StructuredOutputs",
    "TaskCounts",
    "TaskSource",
    "Timings",
    "TokenCounts",
    "ToolCall",
    "ToolSpec",
    "TrainerRun",
    "TrainerSample",
    "TrainerStepView",
    "Trajectory",
    "Waste",
    "Webhook",
    "WireError",
    "WorkerView",
    "__version__",
    "trainer_sample",
    "trajectory_from_binary",
    "trajectory_from_json",
    "trajectory_to_binary",
    "trajectory_to_json",
]
