"""Finds routes of the protocol that this client cannot call. Reads the table of routes as JSON, {name: {method, path}}, and prints
those that no method calls and that are not excluded on purpose."""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Callable

from millrace import Client
from millrace.wire.transport import Call, Transport

#: Routes that trainers do not need.
EXCLUDED = {
    "getHealth": "for process supervisors",
    "getReadiness": "for process supervisors",
    "getMetrics": "for Prometheus",
    "getOpenapi": "for client generators",
    "prorlStart": "for ProRL Agent clients",
    "prorlStop": "for ProRL Agent clients",
    "prorlStatus": "for ProRL Agent clients",
    "prorlProcess": "for ProRL Agent clients",
    "prorlCancel": "for ProRL Agent clients",
    "prorlAddServer": "for ProRL Agent clients",
    "prorlClearServers": "for ProRL Agent clients",
}

CALLS: dict[str, Callable[[Client], Any]] = {
    "submitRollouts": lambda client: client.submit([{"scenario": "math", "task": {}}]),
    "listRollouts": lambda client: next(client.list()),
    "getRollout": lambda client: client.get("an-id"),
    "getTrajectory": lambda client: client.trajectory("an-id"),
    "cancelRollout": lambda client: client.cancel("an-id"),
    "retryRollout": lambda client: client.retry("an-id"),
    "forkRollout": lambda client: client.fork("an-id"),
    "listTurns": lambda client: client.turns("an-id"),
    "joinBackend": lambda client: client.backends.join("http://127.0.0.1:1"),
    "listBackends": lambda client: client.backends.list(),
    "leaveBackend": lambda client: client.backends.leave("an-id"),
    "drainBackend": lambda client: client.backends.drain("an-id"),
    "readEvents": lambda client: next(client.events(after=0)),
    "getStatus": lambda client: client.status(),
    "listMachines": lambda client: client.machines(),
    "getJoin": lambda client: client.worker_settings(),
    "openGateway": lambda client: client.gateways.open(),
    "getGateway": lambda client: client.gateways.wait("an-id"),
    "rewardGateway": lambda client: client.gateways.reward("an-id", 1.0),
    "getPolicy": lambda client: client.policy.get(),
    "pausePolicy": lambda client: client.policy.pause(),
    "resumePolicy": lambda client: client.policy.resume(),
    "postTrainerStep": lambda client: client.trainer.post(1),
    "listTrainerSteps": lambda client: next(client.trainer.steps()),
    "readTrainerSamples": lambda client: client.trainer.samples("an-id"),
    "createBatch": lambda client: client.batches.create({"scenario": "math", "group_size": 2, "target": 1}),
    "listBatches": lambda client: next(client.batches.list()),
    "getBatch": lambda client: client.batches.get("an-id"),
    "appendTasks": lambda client: client.batches.append_tasks("an-id", []),
    "readGroups": lambda client: next(client.batches.groups("an-id")),
    "ackGroups": lambda client: client.batches.ack("an-id", "me", 1),
    "resumeBatch": lambda client: client.batches.resume("an-id"),
    "cancelBatch": lambda client: client.batches.cancel("an-id"),
    "createEvaluation": lambda client: client.evaluations.create({"scenario": "math", "tasks": [{}]}),
    "listEvaluations": lambda client: next(client.evaluations.list()),
    "getEvaluation": lambda client: client.evaluations.get("an-id"),
    "readEvaluationTasks": lambda client: next(client.evaluations.tasks("an-id")),
    "retryEvaluation": lambda client: client.evaluations.retry("an-id"),
    "cancelEvaluation": lambda client: client.evaluations.cancel("an-id"),
}


class Recorded(Exception):
    """The method and path that a call would have sent."""


class RecordingTransport(Transport):
    def data(self, call: Call) -> bytes:
        raise Recorded(call.method, call.path)

    def stream(self, call: Call) -> Any:
        raise Recorded(call.method, call.path)


def sent_by(work: Callable[[Client], Any]) -> tuple[str, str]:
    client = Client("http://127.0.0.1:1")
    client._transport.__class__ = RecordingTransport
    try:
        work(client)
    except Recorded as recorded:
        method, path = recorded.args
        return method, path
    raise AssertionError("nothing was sent")


def main() -> None:
    routes = json.load(sys.stdin)
    sent = {sent_by(work) for work in CALLS.values()}
    missing = {}
    for name, route in routes.items():
        wanted = (route["method"], re.sub(r"\{\w+\}", "an-id", route["path"]))
        if wanted not in sent and name not in EXCLUDED:
            missing[name] = f"{route['method']} {route['path']} has no method in the Python client, and is not excluded by name"
    unknown = [name for name in EXCLUDED if name not in routes]
    print(json.dumps({"missing": missing, "excluded_but_unknown": unknown}))


if __name__ == "__main__":
    main()
