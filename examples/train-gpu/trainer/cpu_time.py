"""How much CPU time the programs of a run used, from /proc: a process near one core for each second is what the others wait for."""

from __future__ import annotations

import os
from typing import Callable, Iterable, Optional

TICKS = os.sysconf("SC_CLK_TCK")
#: A process with its parent, its command line, and its CPU seconds: its own, and those of its children that have ended.
Entry = tuple[int, int, str, float, float]


class CpuTime:
    """`service` is the process id of the service. The engine is found by its port, since it may have been started by someone else."""

    def __init__(self, *, engine_port: int, service: Optional[int] = None) -> None:
        self._engine_port, self._service = engine_port, service
        self._before: dict[tuple[int, str], float] = {}
        self.take()

    def take(self) -> dict[str, float]:
        """CPU seconds of each part since the last call. A process that ended in between counts where its parent is counted."""
        now = self._read()
        used: dict[str, float] = {}
        for (pid, name), value in now.items():
            # A process that is new has used all its time since the last call.
            used[name] = used.get(name, 0.0) + max(0.0, value - self._before.get((pid, name), 0.0))
        self._before = now
        return {name: round(value, 3) for name, value in used.items()}

    def _read(self) -> dict[tuple[int, str], float]:
        entries = list(read_processes())
        children: dict[int, list[Entry]] = {}
        for one in entries:
            children.setdefault(one[1], []).append(one)
        found: dict[tuple[int, str], float] = {}

        def visit(entry: Entry, name_of: Callable[[Entry], str]) -> None:
            name = name_of(entry)
            found[entry[0], name] = entry[3]
            if name == "workers":  # sandboxes that have ended
                found[entry[0], "sandboxes"] = entry[4]
            for child in children.get(entry[0], []):
                visit(child, name_of)

        for entry in entries:
            if entry[0] == os.getpid():
                found[entry[0], "trainer"] = entry[3]
            elif entry[0] == self._service:
                visit(entry, _service_part)
            elif "vllm.entrypoints" in entry[2] and f"--port {self._engine_port}" in entry[2]:
                visit(entry, _engine_part)
        return found


def _service_part(entry: Entry) -> str:
    """The workers are programs of their own; what else the service started is in or around a sandbox."""
    words = entry[2].split()
    return "workers" if any("worker-main" in word for word in words) else "service" if "serve" in words else "sandboxes"


def _engine_part(entry: Entry) -> str:
    return "vllm engine" if any(name in entry[2] for name in ("EngineCore", "Worker")) else "vllm api"


def read_processes() -> Iterable[Entry]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            entry = _read_process(int(name))
            if entry:
                yield entry


def _read_process(pid: int) -> Optional[Entry]:
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = file.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None  # it has ended
    user, system, ended_user, ended_system = (int(one) / TICKS for one in fields[11:15])
    return pid, int(fields[1]), command, user + system, ended_user + ended_system
