"""Loads a scenario's file and describes it: its name, the schema of a task, and which functions it has."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Optional

from .schema import from_json, to_schema

FUNCTIONS = ("init", "run", "compact", "collect", "evaluate", "prepare", "prepare_key")


class BadScenario(Exception):
    """The file is not a scenario; the message says what to write."""


class ScenarioFile:
    def __init__(self, path: str) -> None:
        self.path = path
        self.module = _import(path)

    def has(self, name: str) -> bool:
        return getattr(self.module, name, None) is not None

    def function(self, name: str) -> Callable[..., Any]:
        found = getattr(self.module, name)
        if not callable(found):
            raise BadScenario(f"`{name}` must be a function, not {type(found).__name__}")
        return found  # type: ignore[no-any-return]

    def to_task(self, value: Any) -> Any:
        kind = getattr(self.module, "Task", None)
        return from_json(kind, value) if dataclasses.is_dataclass(kind) else value

    def sandbox_of(self, task: Any) -> Optional[dict[str, Any]]:
        given = getattr(self.module, "sandbox", None)
        spec = given(task) if callable(given) else given
        if spec is None or isinstance(spec, dict):
            return spec
        raise TypeError(f"`sandbox` must be a dictionary or None, not {type(spec).__name__}")

    def describe(self) -> dict[str, Any]:
        """Raises BadScenario or TypeError."""
        name = getattr(self.module, "name", None)
        if not isinstance(name, str) or not name:
            raise BadScenario('it has no name: write name = "my-scenario", the name that submissions use')
        for function in ("init", "evaluate"):
            if not self.has(function):
                raise BadScenario(f"it has no function `{function}(rollout)`")
        for function in FUNCTIONS:
            if self.has(function):
                self.function(function)
        for function in ("prepare", "collect"):
            if self.has(function) and not self.has("sandbox"):
                raise BadScenario(f"`{function}` needs `sandbox`: write sandbox = {{}}, or a function sandbox(task)")
        aliases = list(getattr(self.module, "aliases", ()))
        has = [one for one in (*FUNCTIONS, "sandbox") if self.has(one)]
        return {"name": name, "aliases": aliases, "task": self._task_schema(), "has": has, "reward_range": self._reward_range()}

    def _task_schema(self) -> dict[str, Any]:
        kind = getattr(self.module, "Task", None)
        if kind is None:
            raise BadScenario("it has no `Task`: a dataclass or a TypedDict with the fields of a task, or a JSON Schema as a dictionary")
        return dict(kind) if isinstance(kind, dict) else to_schema(kind, "Task")

    def _reward_range(self) -> list[float]:
        given = getattr(self.module, "reward_range", (0.0, 1.0))
        lowest, highest = (float(one) for one in given)
        return [lowest, highest]


def _import(path: str) -> ModuleType:
    folder = str(Path(path).parent)
    if folder not in sys.path:
        sys.path.insert(1, folder)  # modules next to the file; `millrace` stays the one of the service
    spec = importlib.util.spec_from_file_location("millrace_user_scenario", path)
    if spec is None or spec.loader is None:
        raise BadScenario("Python cannot import it")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
