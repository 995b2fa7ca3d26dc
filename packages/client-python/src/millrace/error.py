"""The errors of this client. What the service refuses is raised with the service's own code; a service that cannot be reached is
ServiceUnreachable; a reply that this client cannot read is `internal`."""

from __future__ import annotations

from typing import Any, Mapping, Optional


class MillraceError(Exception):
    """`code`, `blame`, `retryable` and `status` are those of the protocol's error table. `status` is 0 when no reply came."""

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
        return (_restore, (type(self), self.args, vars(self)))


class ServiceUnreachable(MillraceError):
    """The service did not reply: nothing listens at `url`, its name is unknown, the connection stayed broken, or a proxy said so."""

    def __init__(self, url: str, seen: str, *, status: int = 0) -> None:
        remedy = "Start the service with `millrace serve`, or set MILLRACE_URL to its address."
        message = f"cannot reach Millrace at {url}: {seen}. {remedy}"
        super().__init__("unreachable", message, retryable=True, status=status)
        self.url = url


def _restore(kind: type[MillraceError], args: tuple[Any, ...], state: Mapping[str, Any]) -> MillraceError:
    """Unpickles an error without calling its constructor, whose arguments differ between the classes."""
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


def stopped_error() -> MillraceError:
    return MillraceError("cancelled", "the caller stopped this call", blame="caller", status=409)


def corrupt_error(message: str) -> MillraceError:
    """For bytes that are not those that the service sent, or that belong to another rollout."""
    return MillraceError("trajectory-corrupt", message)


def caller_error(message: str) -> MillraceError:
    return MillraceError("bad-request", message, blame="caller", status=400)


def error_from_body(body: Any, status: int) -> Optional[MillraceError]:
    """The error in the body of a reply, or None if the body is not an error of the API."""
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


def show(value: Any) -> str:
    """A value as error messages show it, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
