"""An exception of a scenario as the worker gets it: its type and message, the line of the scenario that is to blame, and the stack."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any, Optional

from .errors import Cancelled, SandboxError, ScenarioError

OURS = str(Path(__file__).resolve().parent)
LIBRARY = str(Path(traceback.__file__).resolve().parent)


def to_failure(error: BaseException, path: str) -> dict[str, Any]:
    failure: dict[str, Any] = {
        "kind": "error",
        "type": type(error).__name__,
        "message": _message(error),
        "stack": "".join(traceback.format_exception(type(error), error, error.__traceback__))[-8000:],
    }
    place = _place(error, path)
    if place is not None:
        failure["place"] = place
    if isinstance(error, ScenarioError):
        failure["blame"] = error.blame
    if isinstance(error, SandboxError):
        failure["ask"] = error.ask
    if isinstance(error, Cancelled):
        failure["kind"] = "cancelled"
    return failure


def _message(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return error.msg or "invalid syntax"
    return str(error) or "(no message)"


def _place(error: BaseException, path: str) -> Optional[str]:
    """The innermost line of the scenario's own code: not Python's library, not a package's, not ours."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno or 1}"
    folder = str(Path(path).parent)
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith("<")]
    outside = [one for one in frames if not one.filename.startswith((OURS, LIBRARY, sys.base_prefix + "/lib"))]
    own = [one for one in outside if one.filename.startswith(folder) and "site-packages" not in one.filename]
    chosen = own[-1:] or outside[-1:]
    return f"{chosen[0].filename}:{chosen[0].lineno}" if chosen else None
