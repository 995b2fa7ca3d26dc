"""The one error class: what the service refuses is raised with the service's own code, and everything else as `internal`
with the address and what was seen."""

from __future__ import annotations

from typing import Any, Mapping, Optional


class MillraceError(Exception):
    """`code`, `blame`, `retryable` and `status` are those of the protocol's error table."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        blame: str = "service",
        retryable: bool = False,
        status: int = 500,
        details: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.blame = blame
        self.retryable = retryable
        self.status = status
        self.details: Mapping[str, Any] = {} if details is None else details

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        rest = {"blame": self.blame, "retryable": self.retryable, "status": self.status, "details": dict(self.details)}
        return (_rebuild, (self.code, self.message, rest))


def _rebuild(code: str, message: str, rest: Mapping[str, Any]) -> MillraceError:
    return MillraceError(code, message, **rest)


def stopped_error() -> MillraceError:
    return MillraceError("cancelled", "the caller stopped this call", blame="caller", status=409)


def caller_error(message: str) -> MillraceError:
    return MillraceError("bad-request", message, blame="caller", status=400)


def error_from_body(body: Any, status: int) -> Optional[MillraceError]:
    """The error that an answer carries, or None where its body is not an error of the API."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("code"), str) or not isinstance(error.get("message"), str):
        return None
    details = error.get("details")
    return MillraceError(
        error["code"],
        error["message"],
        blame=str(error.get("blame", "service")),
        retryable=error.get("retryable") is True,
        status=status,
        details=details if isinstance(details, dict) else None,
    )
