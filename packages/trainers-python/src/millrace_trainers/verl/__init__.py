"""verl: `MillraceAgentLoop` for its v1 trainers, `MillraceAgentLoopManager` for the trainer before (`trainer.use_v1=False`), and
`MillraceCheckpointEngineManager`, which pauses sampling while verl brings new weights to its engines. Importing it registers the advantage
estimator `millrace_grpo`."""

from ..versions import trainer_imports

with trainer_imports("verl"):
    from .agent_loop import MillraceAgentLoop
    from .checkpoint_manager import MillraceCheckpointEngineManager
    from .estimator import compute_millrace_grpo_advantage
    from .manager import MillraceAgentLoopManager

__all__ = [
    "MillraceAgentLoop",
    "MillraceAgentLoopManager",
    "MillraceCheckpointEngineManager",
    "compute_millrace_grpo_advantage",
]
