"""Argument mistakes: each is accepted where the meaning is clear, and otherwise refused before anything is sent, with a hint."""

from __future__ import annotations

import operator
import unittest
from functools import partial
from typing import Any, Callable

from fakes.examples import read_golden
from fakes.fake_service import FakeService, Received, Reply

from millrace import Accepted, BatchView, Client
from millrace.wire.codec import from_wire


def accept(request: Received) -> Reply:
    return Reply({"rollouts": [{"id": one["id"], "state": "queued", "created": True} for one in request.body["rollouts"]]})


def use(call: str, argument: Any, client: Client) -> Any:
    return operator.attrgetter(call)(client)(argument)


class ArgumentsTest(unittest.TestCase):
    def test_submit_takes_one_rollout_or_any_iterable_of_them(self) -> None:
        one = {"id": "r-1", "scenario": "math", "task": {}}
        many: list[Any] = [one, [one], (one,), iter([one]), {"r-1": one}.values()]
        with FakeService(accept) as service, Client(service.url) as client:
            for submitted in many:
                self.assertEqual([accepted.id for accepted in client.submit(submitted)], ["r-1"])
            self.assertEqual([request.body for request in service.received], [{"rollouts": [one]}] * len(many))

    def test_submit_says_what_it_expected(self) -> None:
        good = {"scenario": "math", "task": {}}
        self.refuses(lambda client: client.submit("math"), "submit expects a rollout request.*not 'math'")
        self.refuses(lambda client: client.submit(None), "submit expects a rollout request.*not None")
        self.refuses(lambda client: client.submit([good, "math"]), "submit expects a rollout request.*not 'math' at index 1")
        self.refuses(lambda client: client.submit([[good]]), r"submit expects a rollout request.*not \[.*at index 0")

    def test_an_object_with_an_id_is_not_an_id(self) -> None:
        accepted = Accepted("r-1", "queued", True)
        for call in ("get", "wait", "trajectory", "cancel"):
            self.refuses(partial(use, call, accepted), f"{call} expects a rollout id.*pass its .id, 'r-1'")
        batch = from_wire(BatchView, read_golden("batch-list.json")["batches"][0])
        for call in ("get", "wait", "cancel"):
            self.refuses(partial(use, f"batches.{call}", batch), f"{call} expects a batch id.*pass its .id")
        self.refuses(lambda client: client.batches.append_tasks(batch, []), "append_tasks expects a batch id")
        self.refuses(lambda client: client.batches.ack(batch, "me", 1), "ack expects a batch id")
        self.refuses(lambda client: next(client.batches.groups(batch)), "groups expects a batch id")
        self.refuses(lambda client: client.backends.drain(7), "drain expects a backend id.*not 7")
        self.refuses(lambda client: client.backends.leave(None), "leave expects a backend id.*not None")

    def test_results_takes_a_list_of_ids(self) -> None:
        accepted = Accepted("r-1", "queued", True)
        self.refuses(lambda client: client.results("r-1"), r"results expects a list of rollout ids.*wait\('r-1'\)")
        self.refuses(lambda client: client.results(accepted), "results expects a list of rollout ids.*not Accepted")
        self.refuses(lambda client: client.results([accepted]), "results expects a rollout id.*pass its .id, 'r-1'")

    def test_a_batch_is_one_dict_and_tasks_are_a_list_of_dicts(self) -> None:
        batch = {"scenario": "math", "group_size": 2, "target": 1}
        self.refuses(lambda client: client.batches.create([batch]), "create expects a batch request, a dict")
        self.refuses(lambda client: client.batches.create({**batch, "tasks": {"question": "1"}}), "create expects a list of tasks")
        self.refuses(lambda client: client.batches.create({**batch, "tasks": ["1"]}), "create expects a list of tasks.*not '1' at index 0")
        self.refuses(lambda client: client.batches.append_tasks("b-1", {"question": "1"}), "append_tasks expects a list of tasks")
        self.refuses(lambda client: client.batches.append_tasks("b-1", ["1"]), "append_tasks expects a list of tasks.*not '1' at index 0")

    def refuses(self, work: Callable[[Any], Any], message: str) -> None:
        with FakeService(accept) as service, Client(service.url) as client:
            with self.assertRaisesRegex(TypeError, message):
                work(client)
            self.assertEqual(service.received, [])


if __name__ == "__main__":
    unittest.main()
