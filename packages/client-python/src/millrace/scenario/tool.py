"""Tools of a scenario: a function with type hints and a docstring, as a model sees it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Callable, Optional, TypeVar, overload

from .schema import from_json, hints_of, to_object_schema

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class ToolDefinition:
    name: str
    description: str
    parameters: dict[str, Any]
    function: Callable[..., Any]
    hints: dict[str, Any]
    #: Whether the first parameter is the rollout.
    takes_rollout: bool

    def call(self, rollout: Any, arguments: dict[str, Any]) -> Any:
        given = {name: from_json(self.hints.get(name, Any), value) for name, value in arguments.items()}
        return self.function(rollout, **given) if self.takes_rollout else self.function(**given)


@overload
def tool(function: F) -> F: ...


@overload
def tool(*, name: Optional[str] = None, description: Optional[str] = None) -> Callable[[F], F]: ...


def tool(function: Optional[F] = None, *, name: Optional[str] = None, description: Optional[str] = None) -> Any:
    """Marks a function as a tool. Its docstring is the description. A first parameter named `rollout` gets the rollout; the others are
    the arguments, with type hints: `lines: Annotated[int, "How many lines to show."] = 5`. It returns text for the model, or
    `Finish(answer)`."""

    def mark(marked: F) -> F:
        setattr(marked, "millrace_tool", define(marked, name, description))
        return marked

    return mark if function is None else mark(function)


def define(function: Callable[..., Any], name: Optional[str] = None, description: Optional[str] = None) -> ToolDefinition:
    named = name or function.__name__
    about = description or inspect.getdoc(function)
    if not about:
        raise TypeError(f"the tool {named} has no docstring: it is what the model reads about the tool")
    parameters = list(inspect.signature(function).parameters.values())
    takes_rollout = bool(parameters) and parameters[0].name == "rollout"
    hints = hints_of(function, f"the tool {named}")
    fields = {}
    for parameter in parameters[1:] if takes_rollout else parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"the tool {named} has the parameter {parameter}: a model gives arguments by name")
        if parameter.name not in hints:
            raise TypeError(f"the parameter {parameter.name} of the tool {named} has no type hint")
        fields[parameter.name] = (hints[parameter.name], parameter.default is parameter.empty)
    return ToolDefinition(named, about, to_object_schema(fields, f"the tool {named}"), function, hints, takes_rollout)


def definition_of(given: Any) -> ToolDefinition:
    found = getattr(given, "millrace_tool", None)
    if isinstance(found, ToolDefinition):
        return found
    raise TypeError(f"{given!r} is not a tool: give the name of a built-in tool, or a function marked with @tool")
