"""The sandboxes that `millrace tool-server` lends, over HTTP, with the standard library only."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence


class ToolServerError(RuntimeError):
    """The tool server refused a call, or cannot be reached; the message says what it answered."""


@dataclass(frozen=True)
class ProgramEnd:
    #: None if a signal ended it.
    exit_code: Optional[int]
    timed_out: bool
    stdout: str
    stderr: str


class LentSandbox:
    """One sandbox. The address is by default that in MILLRACE_TOOL_SERVER, the key that in MILLRACE_KEY."""

    def __init__(self, name: str, url: Optional[str] = None) -> None:
        self.name = name
        self._url = (url or os.environ.get("MILLRACE_TOOL_SERVER") or "http://127.0.0.1:5000").rstrip("/")

    def open(self, spec: Mapping[str, Any]) -> None:
        self._call("POST", "/sandboxes", {"name": self.name, **spec})

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout_s: Optional[float] = None,
    ) -> ProgramEnd:
        """Without a time limit, a program has a day."""
        request: dict[str, Any] = {"argv": list(argv), "timeout_s": 86_400 if timeout_s is None else timeout_s}
        if cwd is not None:
            request["cwd"] = cwd
        if env:
            request["env"] = dict(env)
        ended = json.loads(self._call("POST", f"{self._path}/exec", request))
        return ProgramEnd(ended["exit_code"], ended["timed_out"], ended["stdout"], ended["stderr"])

    def write(self, path: str, content: bytes, mode: int = 0o644) -> None:
        query = urllib.parse.urlencode({"path": path, "mode": mode})
        self._call("PUT", f"{self._path}/file?{query}", content)

    def read(self, path: str) -> bytes:
        return self._call("GET", f"{self._path}/file?{urllib.parse.urlencode({'path': path})}")

    def close(self) -> None:
        self._call("DELETE", self._path)

    @property
    def _path(self) -> str:
        return f"/sandboxes/{urllib.parse.quote(self.name, safe='')}"

    def _call(self, method: str, path: str, body: Any = None) -> bytes:
        raw = isinstance(body, bytes)
        data = body if raw else None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"content-type": "application/octet-stream" if raw else "application/json"}
        key = os.environ.get("MILLRACE_KEY")
        if key:
            headers["authorization"] = f"Bearer {key}"
        request = urllib.request.Request(f"{self._url}{path}", data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request) as reply:
                found: bytes = reply.read()
                return found
        except urllib.error.HTTPError as error:
            said = error.read().decode("utf-8", "replace")
            raise ToolServerError(f"{method} {path} of the tool server answered {error.code}: {said[:500]}") from None
        except urllib.error.URLError as error:
            raise ToolServerError(f"no tool server answers at {self._url} ({error.reason}); start one: npx millrace tool-server") from None
