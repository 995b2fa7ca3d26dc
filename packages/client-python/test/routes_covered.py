"""Which routes of the protocol this client cannot call. Reads the table of routes as JSON, {name: {method, path}}, and prints the names
of those that no method asks for and that are not left out on purpose, with what was asked instead."""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Callable

from millrace import Client
from millrace.transport import Call, Transport

#: Routes that are for others than trainers.
LEFT_OUT = {
    "getHealth": "for whoever starts the service",
    "getReadiness": "for whoever starts the service",
    "getMetrics": "for Prometheus",
    "getOpenapi": "for those who make clients",
    "prorlStart": "for clients of ProRL Agent, as are all of these",
    "prorlStop": "",
    "prorlStatus": "",
    "prorlProcess": "",
    "prorlCancel": "",
    "prorlAddServer": "",
    "prorlClearServers": "",
}

CALLS: dict[str, Callable[[Client], Any]] = {
    "submitRollouts": lambda client: client.submit([{"scenario": "math", "task": {}}]),
    "listRollouts": lambda client: next(client.list()),
    "getRollout": lambda client: client.get("an-id"),
    "getTrajectory": lambda client: client.trajectory("an-id"),
    "cancelRollout": lambda client: client.cancel("an-id"),
    "joinBackend": lambda client: client.backends.join("http://127.0.0.1:1"),
    "listBackends": lambda client: client.backends.list(),
    "leaveBackend": lambda client: client.backends.leave("an-id"),
    "drainBackend": lambda client: client.backends.drain("an-id"),
    "readEvents": lambda client: next(client.events(after=0)),
    "getStatus": lambda client: client.status(),
    "getPolicy": lambda client: client.policy.get(),
    "pausePolicy": lambda client: client.policy.pause(),
    "resumePolicy": lambda client: client.policy.resume(),
    "createBatch": lambda client: client.batches.create({}),
    "listBatches": lambda client: next(client.batches.list()),
    "getBatch": lambda client: client.batches.get("an-id"),
    "appendTasks": lambda client: client.batches.append_tasks("an-id", []),
    "readGroups": lambda client: next(client.batches.groups("an-id")),
    "ackGroups": lambda client: client.batches.ack("an-id", "me", 1),
    "cancelBatch": lambda client: client.batches.cancel("an-id"),
}


class Recorded(Exception):
    """What would have been asked."""


class RecordingTransport(Transport):
    def data(self, call: Call) -> bytes:
        raise Recorded(call.method, call.path)

    def stream(self, call: Call) -> Any:
        raise Recorded(call.method, call.path)


def asked_by(work: Callable[[Client], Any]) -> tuple[str, str]:
    client = Client("http://127.0.0.1:1")
    client._transport.__class__ = RecordingTransport
    try:
        work(client)
    except Recorded as recorded:
        method, path = recorded.args
        return method, path
    raise AssertionError("nothing was asked")


def main() -> None:
    routes = json.load(sys.stdin)
    asked = {asked_by(work) for work in CALLS.values()}
    missing = {}
    for name, route in routes.items():
        wanted = (route["method"], re.sub(r"\{\w+\}", "an-id", route["path"]))
        if wanted not in asked and name not in LEFT_OUT:
            missing[name] = f"{route['method']} {route['path']} has no method in the Python client, and is not left out by name"
    unknown = [name for name in LEFT_OUT if name not in routes]
    print(json.dumps({"missing": missing, "left_out_but_unknown": unknown}))


if __name__ == "__main__":
    main()
