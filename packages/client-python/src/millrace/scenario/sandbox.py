"""A sandbox, as a scenario uses it: each method is one request to the worker, which holds the sandbox."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional, Sequence, Union

#: Sends a request of this sandbox to the worker and returns the reply.
Ask = Callable[[str, dict[str, Any]], Any]


@dataclass(frozen=True)
class ExecResult:
    #: None if a signal ended the program.
    exit_code: Optional[int]
    signal: Optional[str]
    timed_out: bool
    stdout_bytes: bytes
    stderr_bytes: bytes
    #: How much output did not fit.
    cut_bytes: int

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode("utf-8", "replace")


@dataclass(frozen=True)
class ShellResult:
    #: `exited`, `timeout`, `shell-killed`, `shell-exited` or `shell-broken`.
    end: str
    exit_code: Optional[int]
    output: str
    cwd: Optional[str]


@dataclass(frozen=True)
class PythonResult:
    #: `ok`, `error`, `timeout`, `host-died` or `missing`.
    end: str
    output: str
    state_lost: bool


@dataclass(frozen=True)
class CheckResult:
    reward: float
    details: dict[str, Any]


class Sandbox:
    """Relative paths start at /workspace. A failing program does not raise; a sandbox that is gone raises `SandboxError`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = 60,
        stdin: Union[str, bytes] = b"",
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        cap_bytes: int = 64 * 1024,
    ) -> ExecResult:
        """Runs a program to its end, outside the agent's shell."""
        if isinstance(argv, str):
            raise TypeError('argv is a list, such as ["bash", "-c", command]')
        arguments = {"argv": list(argv), "timeout_s": timeout_s, "stdin": _encode(stdin), "cap_bytes": cap_bytes}
        reply = self._ask("exec", {**arguments, **_given(cwd=cwd, env=dict(env) if env is not None else None)})
        return ExecResult(
            exit_code=reply.get("exit_code"),
            signal=reply.get("signal"),
            timed_out=reply["timed_out"],
            stdout_bytes=b64decode(reply["stdout"]),
            stderr_bytes=b64decode(reply["stderr"]),
            cut_bytes=reply["cut_bytes"],
        )

    def run_shell(self, command: str, *, timeout_s: float = 60) -> ShellResult:
        """Runs a command in the agent's persistent shell."""
        reply = self._ask("run_shell", {"command": command, "timeout_s": timeout_s})
        return ShellResult(reply["end"], reply.get("exit_code"), reply["output"], reply.get("cwd"))

    def run_python(self, code: str, *, timeout_s: float = 60) -> PythonResult:
        """Runs a cell in the agent's persistent IPython."""
        reply = self._ask("run_python", {"code": code, "timeout_s": timeout_s})
        return PythonResult(reply["end"], reply["output"], reply["state_lost"])

    def read_file(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        """Raises `SandboxError` with the code `not-found` or `artifact-too-large`."""
        return b64decode(self._ask("read_file", {"path": path, "max_bytes": max_bytes})["content"])

    def write_file(self, path: str, content: Union[str, bytes], *, mode: int = 0o644) -> None:
        """Creates missing folders."""
        self._ask("write_file", {"path": path, "content": _encode(content), "mode": mode})

    def read_folder(self, path: str, *, max_bytes: int = 32 << 20, stop_programs: bool = False) -> bytes:
        """Packs a folder as a tar archive, for `collect`, even if the agent made it unreadable or still writes to it."""
        asked = {"path": path, "max_bytes": max_bytes, "stop_programs": stop_programs}
        return b64decode(self._ask("read_folder", asked)["archive"])

    def unpack_folder(self, archive: bytes) -> list[str]:
        """Puts what `read_folder` packed into /workspace of this sandbox. Returns what it had left out, for `run_check`."""
        return list(self._ask("unpack_folder", {"archive": _encode(archive)})["skipped"])

    def run_check(
        self,
        script: str,
        *,
        timeout_s: float,
        reward_range: tuple[float, float] = (0.0, 1.0),
        env: Optional[Mapping[str, str]] = None,
        language: str = "bash",
        skipped: Sequence[str] = (),
    ) -> CheckResult:
        """
        Runs a script, in bash or in Python, that measures the reward; only in `evaluate`. docs/verifiers.md says what it may rely on.
        `skipped` is shown in the details.
        """
        arguments: dict[str, Any] = {"script": script, "language": language, "timeout_s": timeout_s}
        arguments.update(reward_range=list(reward_range), env=dict(env or {}), skipped=list(skipped))
        reply = self._ask("run_check", arguments)
        return CheckResult(reply["reward"], reply.get("details") or {})

    def upload(self, host_path: str, sandbox_path: str) -> None:
        """Copies a file or a folder of the worker's machine into the sandbox."""
        self._ask("upload", {"from": str(host_path), "to": sandbox_path})

    def download(self, sandbox_path: str, host_path: str) -> list[str]:
        """Copies a file or a folder out of the sandbox, to a path that must not exist. Returns what was left out."""
        return list(self._ask("download", {"from": sandbox_path, "to": str(host_path)})["skipped"])


def _encode(content: Union[str, bytes, bytearray]) -> str:
    raw = content.encode("utf-8") if isinstance(content, str) else bytes(content)
    return b64encode(raw).decode("ascii")


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
