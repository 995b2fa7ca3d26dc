"""Machines: the hosts that workers run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Mapping, Optional

#: draining: its workers finish or hand back what they hold. left: they all did. lost: a lease ended, or a worker died.
MachineState = Literal["live", "draining", "left", "lost"]


@dataclass(frozen=True)
class SandboxMeans:
    """What the sandboxes of a machine can have; tasks that ask for more are refused when they are submitted."""

    driver: Literal["bubblewrap", "apptainer"]
    #: Whether tasks that name no image get one.
    default_image: bool
    #: Of tasks that choose none.
    network: Literal["none", "host"]
    host_network: bool
    user_namespaces: bool


@dataclass(frozen=True)
class MachineReport:
    """What a worker reports about the machine that it runs on."""

    #: The same for all workers of a machine until it is started again.
    id: str
    #: Its node name in Slurm, its host name elsewhere, or the configured name.
    name: str
    labels: Mapping[str, str]
    cpus: int
    memory_bytes: int
    #: The scenarios that its workers have loaded.
    scenarios: tuple[str, ...] = ()
    #: What its sandboxes can have.
    sandboxes: Optional[SandboxMeans] = None
    #: Of the worker that reports it.
    version: Optional[str] = None


@dataclass(frozen=True)
class MachineSlots:
    init: int
    run: int
    evaluate: int


@dataclass(frozen=True)
class MachineView:
    id: str
    name: str
    labels: Mapping[str, str]
    cpus: int
    memory_bytes: int
    state: MachineState
    #: Live worker processes, and the rollouts that they hold in any stage.
    workers: int
    held: int
    #: Its capacity: the slots of its live workers.
    slots: MachineSlots
    #: Since one of its workers last renewed its lease.
    heartbeat_age_ms: int
    started_at: str
    #: The scenarios that its workers have loaded.
    scenarios: tuple[str, ...] = ()
    #: What its sandboxes can have.
    sandboxes: Optional[SandboxMeans] = None
    #: Of Millrace, as its workers report them; several during an upgrade.
    versions: tuple[str, ...] = ()


@dataclass(frozen=True)
class MachineList:
    machines: tuple[MachineView, ...]


@dataclass(frozen=True)
class LocalStore:
    machine: str
    machine_id: str


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker on another machine needs. Without a wire, `config` holds the password of the store."""

    config: Mapping[str, Any]
    #: The machine that holds the store, if the store is a file: only workers of that machine can join.
    local_store: Optional[LocalStore]
    #: The wire of the calls of workers that the service answers in place of its store.
    wire: Optional[int] = None
