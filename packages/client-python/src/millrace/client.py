"""The client of the HTTP API for threads. Every call is safe to repeat, survives a restart of the service of up to `timeout_s`
seconds, and takes a `stop` that ends it from another thread. Any number of threads may share one client."""

from __future__ import annotations

import json
import os
import uuid
from typing import Any, Iterable, Iterator, Literal, Optional, Sequence, Type

from .arguments import check_id, check_ids
from .batches.batches import Batches
from .error import caller_error, corrupt_error
from .evaluations.evaluations import Evaluations
from .rollouts.results import follow_results
from .rollouts.request import Sampling
from .rollouts.rollout import (
    Accepted,
    CancelOutcome,
    CancelReply,
    Forks,
    RolloutList,
    RolloutState,
    RolloutView,
    SavedTurn,
    SavedTurnList,
)
from .rollouts.submit import RolloutRequests, submit_all
from .service.backends import Backends
from .service.event_stream import read_events
from .rollouts.gateways import Gateways
from .service.policy import Policy
from .service.machines import MachineList, MachineView, WorkerSettings
from .service.status import Event, ServiceStatus
from .service.trainer import Trainer
from .stop import Stop
from .trajectories.binary import MEDIA_TYPE, trajectory_from_binary
from .trajectories.trajectory import Trajectory, trajectory_from_json
from .wire.transport import POLL_S, Call, Transport, to_path

_DEFAULT_URL = "http://127.0.0.1:8007"
_PAGE = 1000


class Client:
    def __init__(self, url: Optional[str] = None, api_key: Optional[str] = None, *, timeout_s: float = 30.0) -> None:
        """`url` and `api_key` default to MILLRACE_URL and MILLRACE_KEY, and then to the service on this machine without a key."""
        address = url or os.environ.get("MILLRACE_URL") or _DEFAULT_URL
        self._transport = Transport(address, api_key or os.environ.get("MILLRACE_KEY") or None, timeout_s)
        self.backends = Backends(self._transport)
        self.policy = Policy(self._transport)
        self.batches = Batches(self._transport)
        self.evaluations = Evaluations(self._transport)
        self.gateways = Gateways(self._transport)
        self.trainer = Trainer(self._transport)

    def submit(self, rollouts: RolloutRequests, *, stop: Optional[Stop] = None) -> Sequence[Accepted]:
        """Takes one rollout request or any number of them. Repeating it with the same ids changes nothing."""
        return submit_all(self._transport, rollouts, stop)

    def get(self, id: str, *, stop: Optional[Stop] = None) -> RolloutView:
        return self._transport.json(Call("GET", _path(id, "get"), stop=stop), RolloutView)

    def wait(self, id: str, *, stop: Optional[Stop] = None) -> RolloutView:
        """Returns when the rollout has finished."""
        call = Call("GET", _path(id, "wait"), {"wait": POLL_S}, wait_s=POLL_S, stop=stop)
        while True:
            view = self._transport.json(call, RolloutView)
            if view.ended:
                return view

    def list(
        self,
        *,
        state: Optional[RolloutState] = None,
        group: Optional[str] = None,
        scenario: Optional[str] = None,
        prefix: Optional[str] = None,
        stop: Optional[Stop] = None,
    ) -> Iterator[RolloutView]:
        """In the order of submission; with `prefix`, those whose id begins with it, in the order of their ids."""
        after: Optional[str] = None
        filters = {"state": state, "group": group, "scenario": scenario, "prefix": prefix}
        while True:
            query = {"limit": _PAGE, **filters, "after": after}
            page = self._transport.json(Call("GET", "/v1/rollouts", query, stop=stop), RolloutList)
            yield from page.rollouts
            after = page.next
            if after is None:
                return

    def results(
        self, ids: Iterable[str], *, after: Optional[int] = None, stop: Optional[Stop] = None
    ) -> Iterator[RolloutView]:
        """Yields each of these rollouts once, in the order in which they finish. `after`, an event id from before they were
        submitted (`status().last_event_id`), saves one request for each."""
        wanted = check_ids(ids, "results", "rollout")

        def get(id: str, inner: Stop) -> RolloutView:
            return self.get(id, stop=inner)

        def follow() -> Iterator[RolloutView]:
            start = self.status(stop=stop).last_event_id if after is None else after
            yield from follow_results(self._transport, get, wanted, after=start, check_first=after is None, stop=stop)

        return follow()

    def trajectory(
        self, id: str, *, form: Literal["binary", "json"] = "binary", numpy: bool = False, stop: Optional[Stop] = None
    ) -> Trajectory:
        """The trajectory of a finished rollout. Both forms carry the same numbers; binary is smaller and faster."""
        path = f"{_path(id, 'trajectory')}/trajectory"
        if form == "binary":
            found = self._transport.read(Call("GET", path, headers={"accept": MEDIA_TYPE}, stop=stop), trajectory_from_binary)
        elif form == "json":
            found = self._transport.read(Call("GET", path, stop=stop), lambda data: trajectory_from_json(json.loads(data)))
        else:
            raise caller_error(f"the form of a trajectory is binary or json, not {form!r}")
        if found.rollout_id != id:
            raise corrupt_error(f"the reply for rollout {id} is the trajectory of rollout {found.rollout_id}")
        return found.to_numpy() if numpy else found

    def cancel(self, id: str, *, stop: Optional[Stop] = None) -> CancelOutcome:
        """`cancelled`: it is over now. `asked`: a worker is running it and will stop it. `ended`: it had finished before."""
        return self._transport.json(Call("DELETE", _path(id, "cancel"), stop=stop), CancelReply).cancel

    def retry(self, id: str, *, stop: Optional[Stop] = None) -> RolloutView:
        """Submits the task of a rollout that finished without a reward again, as `ID.1`, `ID.2`, .... Returns the new rollout."""
        return self._transport.json(Call("POST", f"{_path(id, 'retry')}/retry", stop=stop), RolloutView)

    def turns(self, id: str, *, stop: Optional[Stop] = None) -> tuple[SavedTurn, ...]:
        """The turns of a rollout that are saved, and whether it can be forked after each."""
        return self._transport.json(Call("GET", f"{_path(id, 'turns')}/turns", stop=stop), SavedTurnList).turns

    def fork(
        self,
        id: str,
        n: int = 1,
        *,
        turn: Optional[int] = None,
        sampling: Optional[Sampling] = None,
        name: Optional[str] = None,
        stop: Optional[Stop] = None,
    ) -> Forks:
        """Starts `n` rollouts that share the tokens of a rollout up to a turn, and its sandbox as it was then: NAME.1, NAME.2, ....
        Without `turn`, the last one that was kept; which are is `keep_checkpoints` of its submission."""
        body = {"id": name or f"r-{uuid.uuid4()}", "n": n, "turn": turn, "sampling": sampling}
        body = {key: value for key, value in body.items() if value is not None}
        return self._transport.json(Call("POST", f"{_path(id, 'fork')}/forks", body=body, stop=stop), Forks)

    def events(self, *, after: Optional[int] = None, stop: Optional[Stop] = None) -> Iterator[Event]:
        """Yields events from now on, or after an event id, until it is stopped. Raises `gone` if events after it are no longer kept."""
        start = self.status(stop=stop).last_event_id if after is None else after
        yield from read_events(self._transport, start, stop, on_resume=lambda: None)

    def status(self, *, stop: Optional[Stop] = None) -> ServiceStatus:
        return self._transport.json(Call("GET", "/v1/status", stop=stop), ServiceStatus)

    def machines(self, *, stop: Optional[Stop] = None) -> tuple[MachineView, ...]:
        """The machines with workers, live ones first. Those that are gone are shown for ten minutes."""
        return self._transport.json(Call("GET", "/v1/machines", stop=stop), MachineList).machines

    def worker_settings(self, *, stop: Optional[Stop] = None) -> WorkerSettings:
        """What a worker on another machine needs, with the password of the store. The key must have every right."""
        return self._transport.json(Call("GET", "/v1/join", stop=stop), WorkerSettings)

    def close(self) -> None:
        """Calls still in progress in other threads raise `cancelled`."""
        self._transport.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process (Ray, multiprocessing) has its own connections to the same service, with the same key."""
        transport = self._transport
        return _reopen, (type(self), transport.url, transport.key, transport.timeout_s)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reopen(kind: Type[Client], url: str, key: Optional[str], timeout_s: float) -> Client:
    return kind(url, key, timeout_s=timeout_s)


def _path(id: str, call: str) -> str:
    return to_path("/v1/rollouts/{id}", id=check_id(id, call, "rollout"))
