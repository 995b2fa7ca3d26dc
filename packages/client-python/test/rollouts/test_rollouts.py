"""Submitting, listing and collecting rollouts, with an event stream that breaks and a queue that is full."""

from __future__ import annotations

import json
import threading
import time
import unittest
from typing import Any, Iterator

from fakes.examples import read_golden
from fakes.fake_service import FakeService, Received, Reply, refusal

from millrace import Client, MillraceError, RolloutRequest, Stop
from millrace.service.event_stream import read_frames


def to_event(id: int, kind: str, **fields: Any) -> bytes:
    event = {"id": id, "at": "2026-01-02T03:04:05.678Z", "kind": kind, "data": {}, **fields}
    return f"id: {id}\nevent: {kind}\ndata: {json.dumps(event)}\n\n".encode()


def to_view(id: str, state: str) -> Any:
    return {**read_golden("rollout.json"), "id": id, "state": state}


class SubmitTest(unittest.TestCase):
    def queue(self, room: int, most: int) -> tuple[FakeService, list[str]]:
        """Accepts at most `most` rollouts a request, and returns 429 every second time."""
        taken: list[str] = []
        turns: list[None] = []

        def reply_to(request: Received) -> Reply:
            rollouts = request.body["rollouts"]
            turns.append(None)
            if len(rollouts) > most:
                return refusal("body-too-large", 413)
            if len(rollouts) > room or len(turns) % 2 == 0:
                return refusal("too-busy", 429, retry_after="0.001")
            created = [one["id"] not in taken for one in rollouts]
            taken.extend(one["id"] for one in rollouts if one["id"] not in taken)
            return Reply({"rollouts": [{"id": one["id"], "state": "queued", "created": new} for one, new in zip(rollouts, created)]})

        service = FakeService(reply_to)
        self.addCleanup(service.close)
        return service, taken

    def test_more_rollouts_than_the_queue_holds_are_submitted_in_smaller_chunks_in_order_and_once(self) -> None:
        service, taken = self.queue(room=40, most=300)
        with Client(service.url) as client:
            submissions: list[RolloutRequest] = [{"id": f"r-{index}", "scenario": "math", "task": {"n": index}} for index in range(1500)]
            accepted = client.submit(submissions)
        self.assertEqual([one.id for one in accepted], [one["id"] for one in submissions])
        self.assertEqual(taken, [one["id"] for one in submissions])

    def test_ids_are_generated_once_so_that_a_lost_reply_changes_nothing(self) -> None:
        seen: list[Any] = []

        def reply_to(request: Received) -> Reply:
            seen.append(request.body)
            if len(seen) == 1:
                return Reply(hang_up=True)
            return Reply({"rollouts": [{"id": one["id"], "state": "queued", "created": False} for one in request.body["rollouts"]]})

        with FakeService(reply_to) as service, Client(service.url) as client:
            [accepted] = client.submit([{"scenario": "math", "task": {}}])
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(accepted.id, seen[0]["rollouts"][0]["id"])

    def test_a_refusal_is_raised_and_an_empty_submission_sends_nothing(self) -> None:
        with FakeService(lambda _: refusal("task-invalid", 400)) as service, Client(service.url) as client:
            self.assertEqual(list(client.submit([])), [])
            with self.assertRaisesRegex(MillraceError, "task-invalid"):
                client.submit([{"scenario": "math", "task": {}}])
            self.assertEqual(len(service.received), 1)

    def test_a_number_that_json_cannot_express_is_refused_before_it_is_sent(self) -> None:
        with FakeService(lambda _: Reply()) as service, Client(service.url) as client:
            with self.assertRaises(ValueError):
                client.submit([{"scenario": "math", "task": {"n": float("nan")}}])
            self.assertEqual(service.received, [])


class CollectTest(unittest.TestCase):
    def test_wait_polls_until_the_rollout_has_finished(self) -> None:
        states = ["queued", "run", "done"]
        with FakeService(lambda _: Reply(to_view("r-1", states.pop(0)))) as service, Client(service.url) as client:
            self.assertEqual(client.wait("r-1").state, "done")
            self.assertEqual([request.query for request in service.received], [{"wait": "25"}] * 3)

    def test_list_reads_every_page_with_its_filters(self) -> None:
        def reply_to(request: Received) -> Reply:
            last = "after" in request.query
            return Reply({"rollouts": [to_view("r-2" if last else "r-1", "done")], "next": None if last else "r-1"})

        with FakeService(reply_to) as service, Client(service.url) as client:
            self.assertEqual([one.id for one in client.list(group="g-1", prefix="r-")], ["r-1", "r-2"])
            self.assertEqual(service.received[1].query, {"limit": "1000", "group": "g-1", "prefix": "r-", "after": "r-1"})

    def test_results_come_in_the_order_in_which_rollouts_finish(self) -> None:
        hold = threading.Event()

        def stream() -> Iterator[bytes]:
            yield b"".join(to_event(11 + index, "rollout-end", rollout_id=f"r-{id}") for index, id in enumerate((2, 0, 3, 1)))
            hold.wait(30)

        def reply_to(request: Received) -> Reply:
            return Reply(chunks=stream()) if request.path == "/v1/events" else Reply(to_view(request.path.rsplit("/", 1)[1], "done"))

        with FakeService(reply_to) as service, Client(service.url) as client:
            views = client.results(["r-0", "r-1", "r-2", "r-3"], after=10)
            self.assertEqual([one.id for one in views], ["r-2", "r-0", "r-3", "r-1"])
        hold.set()

    def test_each_result_comes_once_although_the_event_stream_breaks(self) -> None:
        ended = {"r-0"}
        finish = threading.Event()

        def first() -> Iterator[bytes]:
            yield b": open\n\n"
            ended.add("r-2")
            yield to_event(11, "rollout-end", rollout_id="r-2") + to_event(12, "rollout-end", rollout_id="r-unknown")
            ended.add("r-1")
            yield to_event(13, "rollout-end", rollout_id="r-1")[:-1]  # Breaks before the frame is complete.

        def second() -> Iterator[bytes]:
            yield to_event(12, "rollout-end", rollout_id="r-unknown") + to_event(13, "rollout-end", rollout_id="r-1")
            ended.add("r-3")
            yield to_event(14, "of-tomorrow") + to_event(15, "rollout-end", rollout_id="r-3")
            finish.wait(30)

        streams = [first(), second()]
        opened: list[str] = []

        def reply_to(request: Received) -> Reply:
            if request.path == "/v1/status":
                return Reply({**read_golden("status.json"), "last_event_id": 10})
            if request.path == "/v1/events":
                opened.append(request.headers["last-event-id"])
                return Reply(chunks=streams.pop(0))
            id = request.path.rsplit("/", 1)[1]
            return Reply(to_view(id, "done" if id in ended else "run"))

        with FakeService(reply_to) as service, Client(service.url) as client:
            ids = ["r-0", "r-1", "r-2", "r-3"]
            self.assertEqual(sorted(one.id for one in client.results(ids)), ids)
            self.assertEqual(opened, ["10", "12"])
        finish.set()

    def test_results_of_an_unknown_rollout_are_an_error(self) -> None:
        hold = threading.Event()

        def stream() -> Iterator[bytes]:
            yield b": open\n\n"
            hold.wait(30)

        def reply_to(request: Received) -> Reply:
            if request.path == "/v1/status":
                return Reply(read_golden("status.json"))
            return Reply(chunks=stream()) if request.path == "/v1/events" else refusal("not-found", 404)

        with FakeService(reply_to) as service, Client(service.url) as client:
            with self.assertRaisesRegex(MillraceError, "not-found"):
                list(client.results(["r-1"]))
        hold.set()

    def test_results_that_are_abandoned_leave_no_thread(self) -> None:
        hold = threading.Event()

        def stream() -> Iterator[bytes]:
            yield to_event(11, "rollout-end", rollout_id="r-1")
            hold.wait(30)

        def reply_to(request: Received) -> Reply:
            return Reply(chunks=stream()) if request.path == "/v1/events" else Reply(to_view("r-1", "done"))

        with FakeService(reply_to) as service, Client(service.url) as client:
            results = client.results(["r-1", "r-2"], after=10)
            self.assertEqual(next(results).id, "r-1")
            started = time.monotonic()
            results.close()  # type: ignore[attr-defined]
            self.assertLess(time.monotonic() - started, 5)
            self.assertEqual([one.name for one in threading.enumerate() if one.name.startswith("millrace")], [])
        hold.set()

    def test_a_stop_ends_results_that_wait(self) -> None:
        hold, reached = threading.Event(), threading.Event()

        def stream() -> Iterator[bytes]:
            yield b": open\n\n"
            reached.set()
            hold.wait(30)

        stop = Stop()
        with FakeService(lambda _: Reply(chunks=stream())) as service, Client(service.url) as client:
            threading.Thread(target=lambda: stop.stop() if reached.wait(10) else None).start()
            started = time.monotonic()
            with self.assertRaisesRegex(MillraceError, "cancelled"):
                list(client.results(["r-1"], after=10, stop=stop))
            self.assertLess(time.monotonic() - started, 5)
        hold.set()

    def test_events_resume_where_they_stopped(self) -> None:
        streams = [[to_event(1, "turn-end")], [to_event(1, "turn-end"), to_event(2, "worker-start", worker_id="w-1")]]
        with FakeService(lambda _: Reply(chunks=streams.pop(0))) as service, Client(service.url) as client:
            events = client.events(after=0)
            self.assertEqual([(one.id, one.kind) for one in (next(events), next(events))], [(1, "turn-end"), (2, "worker-start")])
            self.assertEqual([request.query["after"] for request in service.received], ["0", "1"])

    def test_events_of_a_service_that_stays_down_fail_after_the_timeout(self) -> None:
        with FakeService(lambda _: refusal("not-running", 503)) as service, Client(service.url, timeout_s=0.3) as client:
            with self.assertRaisesRegex(MillraceError, "not-running"):
                next(client.events(after=0))

    def test_only_complete_frames_are_read(self) -> None:
        lines = [b": alive\n", b"\n", b"id: 1\r\n", b"data: a\r\n", b"data:b\r\n", b"\r\n", b"\n", b"data: cut\n", b"data: off"]
        self.assertEqual(list(read_frames(lines)), [None, "a\nb"])


if __name__ == "__main__":
    unittest.main()
