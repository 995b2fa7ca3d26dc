"""Evaluations: requests are safe to repeat, waiting ends with the evaluation, and pages are read to their end."""

from __future__ import annotations

import asyncio
import unittest
from typing import Any

from fakes.examples import read_golden
from fakes.fake_service import FakeService, Received, Reply

from millrace import AsyncClient, Client, EvaluationView, MillraceError

OPEN = read_golden("evaluation-list.json")["evaluations"][0]
TASK = read_golden("evaluation-tasks.json")["tasks"][0]


class Progress:
    """An evaluation that is open for `polls` requests, and the requests that arrived."""

    def __init__(self, polls: int) -> None:
        self.polls = polls

    def reply_to(self, request: Received) -> Reply:
        if request.path.endswith("/tasks"):
            start = int(request.query["from"])
            return Reply({"tasks": [{**TASK, "index": start}], "next": start + 1 if start < 2 else None})
        if request.method == "GET" and request.path == "/v1/evaluations":
            after = request.query.get("after")
            return Reply({"evaluations": [{**OPEN, "id": "e-2" if after else "e-1"}], "next": None if after else "1"})
        self.polls -= 1
        return Reply({**OPEN, "state": "open" if self.polls > 0 else "done"})


class EvaluationsTest(unittest.TestCase):
    def test_a_request_gets_an_id_and_keeps_the_callers(self) -> None:
        with FakeService(Progress(9).reply_to) as service, Client(service.url) as client:
            client.evaluations.create({"scenario": "math", "tasks": iter([{"question": "1"}]), "n": 4})  # type: ignore[typeddict-item]
            client.evaluations.create({"id": "mine", "scenario": "math", "tasks": [{"question": "1"}], "requires": {"gpu": "a100"}})
            made, mine = (request.body for request in service.received)
        self.assertRegex(made["id"], r"^e-[0-9a-f-]{36}$")
        self.assertEqual((made["tasks"], made["n"], mine["id"], mine["requires"]), ([{"question": "1"}], 4, "mine", {"gpu": "a100"}))

    def test_wait_returns_when_the_evaluation_has_ended(self) -> None:
        with FakeService(Progress(3).reply_to) as service, Client(service.url) as client:
            view = client.evaluations.wait("e-1")
            self.assertEqual([request.query.get("wait") for request in service.received], ["25"] * 3)
        self.assertTrue(view.ended)
        self.assertEqual((view.mean.value, view.pass_at[0].k, view.samples.unscored, view.failures[0].blame), (0.5625, 1, 1, "verifier"))

    def test_lists_and_tasks_are_read_to_their_last_page(self) -> None:
        with FakeService(Progress(9).reply_to) as service, Client(service.url) as client:
            self.assertEqual([one.id for one in client.evaluations.list(state="open")], ["e-1", "e-2"])
            tasks = list(client.evaluations.tasks("e-1"))
        self.assertEqual([one.index for one in tasks], [0, 1, 2])
        self.assertEqual([one.reward for one in tasks[0].samples], [0.5, None])

    def test_mistakes_are_refused_before_anything_is_sent(self) -> None:
        with FakeService(Progress(9).reply_to) as service, Client(service.url) as client:
            wrong: list[Any] = [None, "math", [{}], {"scenario": "math", "tasks": {"question": "1"}}, {"scenario": "math", "tasks": ["1"]}]
            for one in wrong:
                with self.assertRaisesRegex(TypeError, "create expects (an evaluation request|a list of tasks)", msg=repr(one)):
                    client.evaluations.create(one)
            with self.assertRaisesRegex(TypeError, "get expects an evaluation id"):
                client.evaluations.get(None)  # type: ignore[arg-type]
            with self.assertRaises(MillraceError):
                client.evaluations.get("")
            self.assertEqual(service.received, [])

    def test_asyncio_has_the_same_calls(self) -> None:
        async def use(url: str) -> EvaluationView:
            async with AsyncClient(url) as client:
                await client.evaluations.create({"scenario": "math", "tasks": [{}]})
                assert [one.id async for one in client.evaluations.list()] == ["e-1", "e-2"]
                assert [one.index async for one in client.evaluations.tasks("e-1")] == [0, 1, 2]
                assert (await client.evaluations.get("e-1")).id == "e-1"
                await client.evaluations.cancel("e-1")
                return await client.evaluations.wait("e-1")

        with FakeService(Progress(5).reply_to) as service:
            self.assertEqual(asyncio.run(use(service.url)).state, "done")


if __name__ == "__main__":
    unittest.main()
