"""Harbor: `MillraceEnvironment` gives Harbor's own agents and verifiers the sandboxes of a tool server. With `MillraceAgent`,
`MillraceVerifier` and `RolloutEnvironment` a whole rollout of Millrace, its sandbox and verifier included, is a trial of Harbor."""

from ..versions import trainer_imports

with trainer_imports("harbor"):
    from .environment import MillraceEnvironment
    from .trial import MillraceAgent, MillraceVerifier, RolloutEnvironment

__all__ = ["MillraceAgent", "MillraceEnvironment", "MillraceVerifier", "RolloutEnvironment"]
