"""Runs what a trainer asks for: a fixed list of tasks, each with its group, through a Millrace service, and returns every rollout in
the order of the list, whether or not it has a reward. All adapters sample through this."""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, cast

from millrace import Client, Limits, MillraceError, PauseMode, PolicyView, RolloutRequest, RolloutView, Sampling, Stop, Trajectory

from .logprobs import LogprobsRule, check_logprobs
from .settings import TaskError, merge_sampling, without_nulls

log = logging.getLogger("millrace_trainers")
#: How often a pause of another process is looked at.
_PAUSE_POLL_S = 0.5


@dataclass(frozen=True)
class Job:
    """One rollout to run."""

    task: Mapping[str, Any]
    #: Siblings have the same group, inside one call of `run`.
    group: str
    #: Makes the rollout idempotent, and its group that of the job as it is. By default both are new with every call.
    id: Optional[str] = None
    #: By default that of the source.
    scenario: Optional[str] = None
    #: Overrides fields of the source's sampling.
    sampling: Optional[Sampling] = None
    #: Instead of those of the source.
    limits: Optional[Limits] = None
    metadata: Optional[Mapping[str, Any]] = None


@dataclass(frozen=True)
class Sampled:
    """A rollout that has ended. Without a trajectory if it ended before its first turn."""

    rollout: RolloutView
    trajectory: Optional[Trajectory]


class RolloutSource:
    """`scenario`, `sampling` and `limits` are those of every rollout; where the trainer has a setting of its own, that one wins. Logprobs
    that do not show how tokens were sampled are an error, unless `logprobs="any"`; MILLRACE_LOGPROBS is its default. The address and key of
    the service are by default those in MILLRACE_URL and MILLRACE_KEY. Any number of threads may share a source."""

    def __init__(
        self,
        scenario: Optional[str] = None,
        *,
        url: Optional[str] = None,
        api_key: Optional[str] = None,
        sampling: Optional[Sampling] = None,
        limits: Optional[Limits] = None,
        priority: int = 0,
        name: Optional[str] = None,
        logprobs: Optional[LogprobsRule] = None,
    ) -> None:
        self.scenario = scenario or os.environ.get("MILLRACE_SCENARIO")
        self.client = Client(url, api_key)
        #: The start of every rollout's id; random, so that two runs never share rollouts.
        self.name = self._base = name or f"t-{uuid.uuid4().hex[:12]}"
        self._owner = f"{self.name}-{uuid.uuid4().hex[:6]}"
        self._process = os.getpid()
        self._sampling: Sampling = sampling or {}
        self._limits = limits
        self._priority = priority
        self._logprobs = logprobs or read_logprobs_rule()
        self._calls = 0
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy in another process counts its own calls, so its rollouts need names of their own."""
        vars(self).update(state, _lock=threading.Lock())
        self._rename()

    def _rename(self) -> None:
        self.name = f"{self._base}-{uuid.uuid4().hex[:8]}"
        self._owner, self._calls, self._process = self.name, 0, os.getpid()

    @property
    def owner(self) -> str:
        """Of this source's pauses; each process has another one."""
        return f"{self._owner}-{os.getpid()}"

    def run(
        self,
        jobs: Sequence[Job],
        *,
        on_end: Optional[Callable[[int, Sampled], None]] = None,
        trained: bool = True,
        stop: Optional[Stop] = None,
    ) -> list[Sampled]:
        """Returns when all have ended, in the order of `jobs`. `on_end` is called with the index of each as it ends. If this raises, what
        still runs is cancelled. `trained=False` is for evaluation, where logprobs do not matter."""
        with self._lock:
            if self._process != os.getpid():  # After a fork, as after a copy.
                self._rename()
            self._calls += 1
            call = self._calls
        requests = self._to_requests(jobs, f"{self.name}-{call}")
        ids = [one["id"] for one in requests]
        found: dict[str, Sampled] = {}
        # With ids of the caller, some may have ended before.
        after = None if any(job.id for job in jobs) else self.client.status(stop=stop).last_event_id
        try:
            self.client.submit(requests, stop=stop)
            for view in self._results(ids, after, stop):
                found[view.id] = Sampled(view, self._read(view, stop))
                check_logprobs(found[view.id].trajectory, self._logprobs if trained else "any")
                if on_end is not None:
                    on_end(ids.index(view.id), found[view.id])
        except BaseException:
            self._cancel([one for one in ids if one not in found])
            raise
        return [found[one] for one in ids]

    @contextmanager
    def new_weights(
        self, policy_version: Optional[int] = None, *, mode: str = "wait", adapter: Optional[str] = None, caches_flushed: bool = True
    ) -> Iterator[PolicyView]:
        """Nothing is sampled inside the block: load the weights there. Afterwards every token counts as sampled by `policy_version`, by
        default the next one, and by the LoRA `adapter`, if one is named. If the block raises, sampling goes on under the old version. No
        other process ends this pause."""
        paused = self.pause("abort" if mode == "abort" else "wait")
        version = paused.policy_version + 1 if policy_version is None else policy_version
        try:
            yield paused
        except BaseException:
            self.resume(paused.policy_version)
            raise
        self.resume(version, allow_lower=version < paused.policy_version, adapter=adapter, caches_flushed=caches_flushed)

    def follow_version(self, policy_version: int) -> None:
        """For trainers that change the weights between two calls, when nothing is sampled: tokens count as sampled by this version from
        now on. Versions only grow, so any process of the trainer may call it. While another one loads weights, it waits."""
        if self.client.policy.get().policy_version >= policy_version:
            return
        paused = self.pause()
        self.resume(max(policy_version, paused.policy_version))

    def pause(self, mode: PauseMode = "wait") -> PolicyView:
        """Returns when nothing is sampled. Only `resume` of this source ends the pause; a pause of another process is waited for."""
        warned = False
        while True:
            try:
                return self.client.policy.pause(mode, owner=self.owner)
            except MillraceError as error:
                if error.code != "conflict":
                    raise
                if not warned:
                    log.warning("waiting for a pause of sampling: %s", error.message)
                warned = True
            time.sleep(_PAUSE_POLL_S)

    def resume(self, policy_version: Optional[int] = None, **options: Any) -> PolicyView:
        """Ends the pause of this source; `options` are those of `client.policy.resume`."""
        return self.client.policy.resume(policy_version, owner=self.owner, **options)

    def close(self) -> None:
        self.client.close()

    def _results(self, ids: Sequence[str], after: Optional[int], stop: Optional[Stop]) -> Iterable[RolloutView]:
        if len(ids) == 1:
            return (self.client.wait(ids[0], stop=stop),)
        return self.client.results(ids, after=after, stop=stop)

    def _to_requests(self, jobs: Sequence[Job], prefix: str) -> list[RolloutRequest]:
        groups: dict[str, int] = {}
        members: dict[str, int] = {}
        requests: list[RolloutRequest] = []
        for job in jobs:
            scenario = job.scenario or self.scenario
            if scenario is None:
                raise TaskError("no scenario: pass one to RolloutSource or to the job, or set MILLRACE_SCENARIO")
            group = job.group if job.id is not None else f"{prefix}-{groups.setdefault(job.group, len(groups))}"
            member = members[group] = members.get(group, -1) + 1
            request: RolloutRequest = {
                "id": job.id or f"{group}-{member}",
                "scenario": scenario,
                "task": job.task,
                "group": group,
                "sampling": merge_sampling(self._sampling, job.sampling),
                "priority": self._priority,
            }
            limits = job.limits or self._limits
            if limits is not None:
                request["limits"] = cast(Limits, without_nulls(limits))
            if job.metadata is not None:
                request["metadata"] = job.metadata
            requests.append(request)
        return requests

    def _read(self, view: RolloutView, stop: Optional[Stop]) -> Optional[Trajectory]:
        try:
            return self.client.trajectory(view.id, stop=stop)
        except MillraceError as error:
            if error.code == "not-found":
                return None  # It ended before its first turn.
            raise

    def _cancel(self, ids: Sequence[str]) -> None:
        for one in ids:
            try:
                self.client.cancel(one)
            except MillraceError:
                return  # The service cannot be reached, or never had it: the error that led here says more.


def read_logprobs_rule() -> LogprobsRule:
    given = os.environ.get("MILLRACE_LOGPROBS") or "check"
    if given not in ("check", "any"):
        raise ValueError(f"MILLRACE_LOGPROBS is {given!r}: expected check or any")
    return "any" if given == "any" else "check"
