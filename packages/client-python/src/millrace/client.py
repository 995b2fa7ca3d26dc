"""The client of the HTTP API for threads. Every call may be repeated safely unless it says otherwise, rides out a restart of the
service of up to `timeout_s`, and takes a `stop` that ends it from another thread; one client serves any number of threads."""

from __future__ import annotations

import json
import os
from typing import Iterator, Optional, Sequence

from .batches.batches import Batches
from .error import caller_error
from .rollouts.results import follow_results
from .rollouts.rollout import Accepted, CancelReply, RolloutList, RolloutView
from .rollouts.submit import Submission, submit_all, to_id
from .service.backends import Backends
from .service.event_stream import read_events
from .service.policy import Policy
from .service.status import Event, ServiceStatus
from .stop import Stop
from .trajectories.binary import MEDIA_TYPE, trajectory_from_binary
from .trajectories.trajectory import Trajectory, trajectory_from_json
from .wire.transport import POLL_S, Call, Transport, to_path

_DEFAULT_URL = "http://127.0.0.1:8007"
_PAGE = 1000


class Client:
    def __init__(self, url: Optional[str] = None, api_key: Optional[str] = None, *, timeout_s: float = 30.0) -> None:
        """Without an address or a key: those in MILLRACE_URL and MILLRACE_KEY, else the service on this machine without a key."""
        address = url or os.environ.get("MILLRACE_URL") or _DEFAULT_URL
        self._transport = Transport(address, api_key or os.environ.get("MILLRACE_KEY") or None, timeout_s)
        self.backends = Backends(self._transport)
        self.policy = Policy(self._transport)
        self.batches = Batches(self._transport)

    def submit(self, submissions: Sequence[Submission], *, stop: Optional[Stop] = None) -> Sequence[Accepted]:
        """In pieces of at most 1000. Repeating it with the same ids changes nothing."""
        return submit_all(self._transport, submissions, stop)

    def get(self, id: str, *, stop: Optional[Stop] = None) -> RolloutView:
        return self._transport.json(Call("GET", _one(id), stop=stop), RolloutView)

    def wait(self, id: str, *, stop: Optional[Stop] = None) -> RolloutView:
        """Comes back when the rollout has ended."""
        while True:
            view = self._transport.json(Call("GET", _one(id), {"wait": POLL_S}, wait_s=POLL_S, stop=stop), RolloutView)
            if view.ended:
                return view

    def list(
        self,
        *,
        state: Optional[str] = None,
        group: Optional[str] = None,
        scenario: Optional[str] = None,
        stop: Optional[Stop] = None,
    ) -> Iterator[RolloutView]:
        """In the order of submission."""
        after: Optional[str] = None
        while True:
            query = {"limit": _PAGE, "state": state, "group": group, "scenario": scenario, "after": after}
            page = self._transport.json(Call("GET", "/v1/rollouts", query, stop=stop), RolloutList)
            yield from page.rollouts
            after = page.next
            if after is None:
                return

    def results(
        self, ids: Sequence[str], *, after: Optional[int] = None, stop: Optional[Stop] = None
    ) -> Iterator[RolloutView]:
        """Each of these rollouts once, in the order of ending. With `after`, an event id from before they were submitted, none is
        asked for in vain."""
        wanted = [to_id(id) for id in ids]
        start = self.status(stop=stop).last_event_id if after is None else after

        def get(id: str, inner: Stop) -> RolloutView:
            return self.get(id, stop=inner)

        yield from follow_results(self._transport, get, wanted, after=start, check_first=after is None, stop=stop)

    def trajectory(
        self, id: str, *, form: str = "binary", numpy: bool = False, stop: Optional[Stop] = None
    ) -> Trajectory:
        """Of a rollout that has ended. Both forms, `binary` and `json`, have the same numbers; the binary one is smaller."""
        path = to_path("/v1/rollouts/{id}/trajectory", id=id)
        if form == "binary":
            found = self._transport.read(Call("GET", path, headers={"accept": MEDIA_TYPE}, stop=stop), trajectory_from_binary)
        elif form == "json":
            found = self._transport.read(Call("GET", path, stop=stop), lambda data: trajectory_from_json(json.loads(data)))
        else:
            raise caller_error(f"the form of a trajectory is binary or json, not {form!r}")
        return found.to_numpy() if numpy else found

    def cancel(self, id: str, *, stop: Optional[Stop] = None) -> str:
        """`cancelled`: it is over now. `asked`: a worker holds it and has been told. `ended`: it was over before."""
        return self._transport.json(Call("DELETE", _one(id), stop=stop), CancelReply).cancel

    def events(self, *, after: Optional[int] = None, stop: Optional[Stop] = None) -> Iterator[Event]:
        """From this moment on, or after an event id; never ends by itself."""
        start = self.status(stop=stop).last_event_id if after is None else after
        yield from read_events(self._transport, start, stop, on_resume=lambda: None)

    def status(self, *, stop: Optional[Stop] = None) -> ServiceStatus:
        return self._transport.json(Call("GET", "/v1/status", stop=stop), ServiceStatus)

    def close(self) -> None:
        """Calls that still run in other threads raise `cancelled`."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _one(id: str) -> str:
    return to_path("/v1/rollouts/{id}", id=to_id(id))
