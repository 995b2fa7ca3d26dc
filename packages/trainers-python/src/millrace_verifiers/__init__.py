"""The plug-in of verifiers and prime-rl: `taskset.id = "millrace_verifiers"` in their configuration. Their loader takes top-level modules
only."""

from millrace_trainers.verifiers.environment import MillraceEnv, MillraceTaskset

__all__ = ["MillraceEnv", "MillraceTaskset"]
