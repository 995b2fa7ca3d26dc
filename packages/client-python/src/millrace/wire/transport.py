"""Requests to one Millrace service. A refusal is raised as the service's own MillraceError. A service that is down or restarting is
retried until `timeout_s` seconds have passed without a reply. Every call of the API is safe to repeat."""

from __future__ import annotations

import http.client
import json
import socket
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Generator, Mapping, Optional, Type, TypeVar, Union
from urllib.parse import quote, urlencode

from ..error import MillraceError, ServiceUnreachable, error_from_body, show
from ..stop import Stop, joined
from .codec import WireError, from_wire
from .connection import Connections, Exchange, Request

T = TypeVar("T")
Query = Mapping[str, Union[str, int, float, bool, None]]

#: How many seconds a long poll asks the service to wait.
POLL_S = 25

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_LONGEST_RETRY_AFTER_S = 60.0
#: What a proxy returns while the service behind it is down.
_PROXY_STATUSES = (502, 503, 504)
#: The service may answer later.
_TEMPORARY_CODES = ("unreachable", "not-running", "too-busy", "store-full")
_BROKEN = (OSError, http.client.HTTPException)


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    query: Query = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: How long the service may hold the reply, as in a long poll.
    wait_s: float = 0.0
    #: Raise a 429 as `too-busy` with `details["retry_after_s"]` instead of waiting and retrying.
    raise_busy: bool = False
    stop: Optional[Stop] = None


def to_path(pattern: str, **places: str) -> str:
    """Fills the `{name}` placeholders of a route's path."""
    for name, value in places.items():
        pattern = pattern.replace(f"{{{name}}}", quote(value, safe=""))
    return pattern


class Transport:
    def __init__(self, url: str, key: Optional[str], timeout_s: float) -> None:
        stripped = url.rstrip("/")
        # Users of OpenAI clients write ...:8007/v1; the routes have it already.
        self.url = stripped[:-3] if stripped.endswith("/v1") else stripped
        self.timeout_s = timeout_s
        self.key = key
        self._connections = Connections(self.url)
        self._closed = Stop()
        self._replied = False

    def close(self) -> None:
        """Calls still in progress raise `cancelled`."""
        self._closed.stop()
        self._connections.close()

    def json(self, call: Call, kind: Type[T]) -> T:
        return self.read(call, lambda data: from_wire(kind, json.loads(data)))

    def read(self, call: Call, decode: Callable[[bytes], T]) -> T:
        """The decoded reply. A reply that `decode` cannot read is an error that shows how the reply begins."""
        data = self.data(call)
        try:
            return decode(data)
        except (WireError, ValueError) as error:
            seen = data[:200].decode(errors="replace").strip()
            raise MillraceError("internal", f"cannot read the reply to {self._name(call)}: {error}: {seen}") from error

    def data(self, call: Call) -> bytes:
        last_reply_at = time.monotonic()
        pause_s = _FIRST_PAUSE_S
        with joined(self._closed, call.stop) as stop:
            while True:
                stop.check()
                tried = self._attempt(call, stop)
                if isinstance(tried, bytes):
                    return tried
                if "retry_after_s" in tried.details:
                    if call.raise_busy:
                        raise tried
                    last_reply_at = time.monotonic()
                    pause_s = float(tried.details["retry_after_s"])
                elif not self.may_recover(tried) or time.monotonic() - last_reply_at + pause_s > self.timeout_s:
                    raise tried
                stop.wait(pause_s)
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def stream(self, call: Call) -> Generator[bytes, None, None]:
        """The lines of a reply as they arrive, in one attempt. Close the iterator if you do not read it to the end."""
        with joined(self._closed, call.stop) as stop:
            try:
                exchange = self._open(call, stop, max(self.timeout_s, 60.0))
                self._replied = True
                if exchange.response.status >= 300:
                    raise self._refusal(call, exchange, exchange.read())
                try:
                    while True:
                        line = exchange.response.readline()
                        stop.check()
                        if line == b"":
                            return
                        yield line
                finally:
                    exchange.close()
            except _BROKEN as error:
                stop.check()
                raise self._broken(call, error)

    def may_recover(self, error: MillraceError) -> bool:
        """Whether the service may answer later. An address that never replied and refuses connections is more likely wrong."""
        refused = isinstance(error.__cause__, (ConnectionRefusedError, socket.gaierror))
        return error.code in _TEMPORARY_CODES and (self._replied or not refused)

    def _attempt(self, call: Call, stop: Stop) -> Union[bytes, MillraceError]:
        try:
            exchange = self._open(call, stop, self.timeout_s + call.wait_s)
            data = exchange.read()
        except _BROKEN as error:
            stop.check()
            return self._broken(call, error)
        self._replied = True
        return data if exchange.response.status < 300 else self._refusal(call, exchange, data)

    def _open(self, call: Call, stop: Stop, timeout_s: float) -> Exchange:
        headers = {"accept": "application/json", **call.headers}
        if self.key is not None:
            headers["authorization"] = f"Bearer {self.key}"
        body = None
        if call.body is not None:
            headers["content-type"] = "application/json"
            body = _to_json(call)
        return self._connections.open(Request(call.method, to_target(call), headers, body, timeout_s), stop)

    def _refusal(self, call: Call, exchange: Exchange, data: bytes) -> MillraceError:
        status = exchange.response.status
        error = error_from_body(_try_json(data), status)
        if error is None:
            seen = data[:200].decode(errors="replace").strip() or "an empty body"
            error = self._foreign(status, f"{self._name(call)} returned {status}: {seen}")
        if status == 429:
            error.details = {**error.details, "retry_after_s": _retry_after(exchange.response.getheader("retry-after"))}
        return error

    def _foreign(self, status: int, seen: str) -> MillraceError:
        """For a reply that is not from Millrace."""
        if status in _PROXY_STATUSES:
            return ServiceUnreachable(self.url, seen, status=status)
        if status == 429:
            return MillraceError("too-busy", seen, retryable=True, status=status)
        doubt = f"; is {self.url} the address of a Millrace service, and not of an LLM server?"
        return MillraceError("internal", seen + doubt, retryable=status > 429, status=status)

    def _broken(self, call: Call, cause: Exception) -> MillraceError:
        error = ServiceUnreachable(self.url, f"{call.method} {to_target(call)}: {str(cause) or type(cause).__name__}")
        error.__cause__ = cause
        return error

    def _name(self, call: Call) -> str:
        return f"{call.method} {self.url}{to_target(call)}"


def to_target(call: Call) -> str:
    pairs = {name: _query_text(value) for name, value in call.query.items() if value is not None}
    return f"{call.path}?{urlencode(pairs)}" if pairs else call.path


def _to_json(call: Call) -> bytes:
    """Numbers and arrays of numpy are written as plain ones."""
    try:
        return json.dumps(call.body, allow_nan=False, default=_to_plain).encode()
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"the body of {call.method} {call.path} cannot be written as JSON: {error}") from error


def _to_plain(value: Any) -> Any:
    if callable(getattr(value, "tolist", None)):
        return value.tolist()
    raise TypeError(f"{show(value)} is not a JSON value")


def _query_text(value: Union[str, int, float, bool, None]) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _retry_after(header: Optional[str]) -> float:
    try:
        seconds = float(header or "")
    except ValueError:
        return _LONGEST_PAUSE_S
    return min(seconds, _LONGEST_RETRY_AFTER_S) if seconds > 0 else _LONGEST_PAUSE_S


def _try_json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None
