"""The process of a scenario, outside the sandbox: answers the worker's calls, each in a thread, until the worker is gone."""

from __future__ import annotations

import asyncio
import ctypes
import inspect
import os
import sys
import threading
from base64 import b64encode
from typing import Any, Optional

from .connection import Connection
from .errors import Cancelled
from .failure import to_failure
from .load import BadScenario, ScenarioFile
from .parts import Finish, Opening, to_messages, to_score
from .rollout import Rollout
from .runner import Runner
from .tool import definition_of


def main(path: str, descriptor: int) -> None:
    _end_with_parent()
    os.dup2(2, 1)  # what the scenario prints is not part of the protocol
    connection = Connection(descriptor)
    try:
        scenario = ScenarioFile(path)
        described = scenario.describe()
    except BaseException as error:
        bad = isinstance(error, (BadScenario, TypeError)) and not isinstance(error, SyntaxError)
        failure = to_failure(error, path)
        connection.send({"type": "refused", "error": {**failure, "kind": "scenario" if bad else failure["kind"]}})
        os._exit(1)
    connection.send({"type": "ready", "scenario": described})
    sidecar = Sidecar(connection, scenario)
    for message in connection.lines():
        sidecar.take(message)
    os._exit(0)  # the worker is gone, and threads of the scenario may never end


class Sidecar:
    def __init__(self, connection: Connection, scenario: ScenarioFile) -> None:
        self._connection = connection
        self._scenario = scenario
        self._rollouts: dict[int, Rollout] = {}
        self._threads: dict[int, threading.Thread] = {}

    def take(self, message: dict[str, Any]) -> None:
        """Never waits: the calls of other rollouts go on."""
        kind = message["type"]
        if kind == "ping":
            self._connection.send({"type": "pong"})
        elif kind == "answer":
            self._connection.answer(message)
        elif kind == "cancel":
            self._cancel(message["id"])
        elif kind == "close":
            self._close(message["rollout"])
        elif message["function"] == "respond":
            self._respond(message)
        else:
            thread = threading.Thread(target=self._work, args=(message,), name=message["function"], daemon=True)
            self._threads[message["id"]] = thread
            thread.start()

    def _work(self, message: dict[str, Any]) -> None:
        call = message["id"]
        try:
            self._reply(call, self._run(message), None)
        except BaseException as error:
            self._reply(call, None, error)
        finally:
            self._threads.pop(call, None)

    def _run(self, message: dict[str, Any]) -> Any:
        function, context = message["function"], message["context"]
        if function == "sandbox":
            return self._scenario.sandbox_of(self._scenario.to_task(context["task"]))
        if function == "prepare_key":
            return _finish(self._scenario.function("prepare_key")(self._scenario.to_task(context["task"])))
        rollout = self._enter(message)
        if function in ("collect", "evaluate") and rollout.runner is not None:
            rollout.runner.stop()
        return getattr(self, f"_{function}")(rollout, context)

    def _enter(self, message: dict[str, Any]) -> Rollout:
        number, context = message["rollout"], message["context"]
        rollout = self._rollouts.get(number)
        if rollout is None:
            rollout = Rollout(self._connection, self._scenario.to_task(context["task"]))
            if message["function"] != "prepare":
                self._rollouts[number] = rollout
        rollout.enter(message["id"], context)
        return rollout

    def _prepare(self, rollout: Rollout, _context: dict[str, Any]) -> None:
        _finish(self._scenario.function("prepare")(rollout))

    def _init(self, rollout: Rollout, _context: dict[str, Any]) -> dict[str, Any]:
        given = _finish(self._scenario.function("init")(rollout))
        if isinstance(given, dict) and "messages" in given:
            given = Opening(given["messages"], given.get("tools"), given.get("sampling"))
        opening = given if isinstance(given, Opening) else Opening(given)
        wanted = opening.tools if opening.tools is not None else getattr(self._scenario.module, "tools", ())
        tools: list[Any] = []
        for one in wanted:
            if isinstance(one, str) or (isinstance(one, dict) and "mcp" in one):
                tools.append(one)
                continue
            found = definition_of(one)
            rollout.tools[found.name] = found
            tools.append({"name": found.name, "description": found.description, "parameters": found.parameters})
        set_by = {} if opening.sampling is None else {"sampling": dict(opening.sampling)}
        return {"messages": to_messages(opening.messages), "tools": tools, **set_by}

    def _tool(self, rollout: Rollout, context: dict[str, Any]) -> dict[str, Any]:
        given = _finish(rollout.tools[context["name"]].call(rollout, context["args"]))
        if isinstance(given, Finish):
            return {"finish": given.answer}
        if isinstance(given, str):
            return {"text": given}
        raise TypeError(f"the tool {context['name']} returned {given!r:.200}: return text, or Finish(answer)")

    def _compact(self, rollout: Rollout, context: dict[str, Any]) -> Optional[list[dict[str, Any]]]:
        given = _finish(self._scenario.function("compact")(rollout, context["messages"]))
        return None if given is None else to_messages(given)

    def _collect(self, rollout: Rollout, _context: dict[str, Any]) -> str:
        given = _finish(self._scenario.function("collect")(rollout))
        if isinstance(given, str):
            given = given.encode("utf-8")
        if not isinstance(given, (bytes, bytearray)):
            raise TypeError(f"collect must return bytes or text, not {type(given).__name__}")
        return b64encode(given).decode("ascii")

    def _evaluate(self, rollout: Rollout, _context: dict[str, Any]) -> dict[str, Any]:
        return to_score(_finish(self._scenario.function("evaluate")(rollout)))

    def _respond(self, message: dict[str, Any]) -> None:
        rollout = self._rollouts[message["rollout"]]
        if rollout.runner is None:
            rollout.runner = Runner(rollout, lambda one: _finish(self._scenario.function("run")(one)), self._reply)
        self._threads[message["id"]] = rollout.runner.thread
        rollout.runner.turn(message["id"], message["context"])

    def _reply(self, call: int, value: Any, error: Optional[BaseException]) -> None:
        self._threads.pop(call, None)
        if error is None:
            try:
                return self._connection.send({"type": "return", "id": call, "value": value})
            except (TypeError, ValueError) as unfit:
                error = TypeError(f"what it returned cannot be written as JSON: {unfit}")
        self._connection.send({"type": "raise", "id": call, "error": to_failure(error, self._scenario.path)})

    def _cancel(self, call: int) -> None:
        """Best effort: a thread inside a C function goes on until that returns."""
        self._connection.cancel(call)
        thread = self._threads.get(call)
        if thread is not None and thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Cancelled))

    def _close(self, number: int) -> None:
        rollout = self._rollouts.pop(number, None)
        if rollout is not None and rollout.runner is not None:
            threading.Thread(target=rollout.runner.stop, daemon=True).start()


def _finish(given: Any) -> Any:
    """Functions may be asynchronous; each has its own event loop."""
    return asyncio.run(_wait(given)) if inspect.isawaitable(given) else given


async def _wait(given: Any) -> Any:
    return await given


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
