"""Scenarios in Python: what a file given to `millrace serve --scenarios` imports. docs/scenarios.md explains every part."""

from .errors import AgentStopped, SandboxError, ScenarioError
from .parts import Append, End, Finish, Opening, Score
from .rollout import Rollout
from .sandbox import CheckResult, ExecResult, PythonResult, Sandbox, ShellResult
from .tool import tool

__all__ = [
    "AgentStopped",
    "Append",
    "CheckResult",
    "End",
    "ExecResult",
    "Finish",
    "Opening",
    "PythonResult",
    "Rollout",
    "Sandbox",
    "SandboxError",
    "ScenarioError",
    "Score",
    "ShellResult",
    "tool",
]
