"""Calls to a service that is busy, down, broken or slow, and what the caller sees."""

from __future__ import annotations

import pickle
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from typing import Callable

from fakes.examples import read_golden
from fakes.fake_service import FakeService, Received, Reply, refusal

from millrace import Client, MillraceError, ServiceUnreachable, Stop


def script(*replies: Reply) -> FakeService:
    """Sends these replies in turn, and then repeats the last one."""
    left = list(replies)
    return FakeService(lambda _: left.pop(0) if len(left) > 1 else left[0])


class Numbers:
    """As an array or a scalar of numpy."""

    def __init__(self, value: object) -> None:
        self.value = value

    def tolist(self) -> object:
        return self.value


class TransportTest(unittest.TestCase):
    def test_numbers_of_numpy_are_sent_as_plain_ones(self) -> None:
        reply = {"rollouts": [{"id": "a", "state": "queued", "created": True}]}
        with script(Reply(reply)) as service, Client(service.url) as client:
            metadata = {"step": Numbers(3), "weights": Numbers([0.5, 1]), "deep": [{"at": Numbers(0.25)}]}
            client.submit({"id": "a", "scenario": "math", "task": {"n": Numbers(7)}, "metadata": metadata})
            [sent] = service.received[0].body["rollouts"]
        self.assertEqual(sent["metadata"], {"step": 3, "weights": [0.5, 1], "deep": [{"at": 0.25}]})
        self.assertEqual(sent["task"], {"n": 7})

    def test_what_is_no_json_is_refused_before_it_is_sent(self) -> None:
        with script(Reply({})) as service, Client(service.url) as client:
            for value in (object(), float("nan"), Numbers(float("inf")), {1, 2}):
                with self.assertRaisesRegex((TypeError, ValueError), "body of POST /v1/rollouts cannot be written as JSON"):
                    client.submit({"id": "a", "scenario": "math", "task": {"n": value}})
            self.assertEqual(service.received, [])

    def test_a_busy_or_restarting_service_is_retried(self) -> None:
        good = Reply(read_golden("rollout.json"))
        busy, down = refusal("too-busy", 429, retry_after="0.01"), refusal("not-running", 503)
        for bad in (busy, down, Reply(hang_up=True), Reply(b"<html>", 502)):
            with self.subTest(bad), script(bad, bad, good) as service, Client(service.url) as client:
                self.assertEqual(client.get("r-1").id, "r-1")
                self.assertEqual(len(service.received), 3)

    def test_retry_after_is_respected(self) -> None:
        busy = refusal("too-busy", 429, retry_after="0.3")
        with script(busy, Reply(read_golden("rollout.json"))) as service, Client(service.url) as client:
            started = time.monotonic()
            client.get("r-1")
            self.assertGreaterEqual(time.monotonic() - started, 0.3)

    def test_a_service_that_stays_down_raises_its_own_error_after_the_timeout(self) -> None:
        with script(refusal("not-running", 503)) as service, Client(service.url, timeout_s=2) as client:
            with self.assertRaises(MillraceError) as caught:
                client.get("r-1")
            self.assertEqual((caught.exception.code, caught.exception.status), ("not-running", 503))

    def test_a_refusal_is_raised_at_once_with_every_field(self) -> None:
        with script(refusal("not-found", 404)) as service, Client(service.url) as client:
            with self.assertRaises(MillraceError) as caught:
                client.get("r-1")
            error = caught.exception
            self.assertEqual((error.code, error.blame, error.retryable, error.status), ("not-found", "service", True, 404))
            self.assertEqual((error.message, error.details), ("this is not-found", {"seen": 1}))
            self.assertEqual(len(service.received), 1)

    def test_an_unreadable_reply_is_an_error_that_shows_it(self) -> None:
        with script(Reply({"id": "r-1"})) as service, Client(service.url) as client:
            message = r"cannot read the reply to GET http://.*/v1/rollouts/r-1: .*scenario is missing.*r-1"
            with self.assertRaisesRegex(MillraceError, message):
                client.get("r-1")
        with script(Reply(b"not json")) as service, Client(service.url) as client:
            with self.assertRaisesRegex(MillraceError, "not json"):
                client.status()

    def test_a_service_that_is_not_running_is_unreachable_at_once_with_its_address_and_a_remedy(self) -> None:
        with script(Reply()) as service:
            url = service.url
        started = time.monotonic()
        calls: list[Callable[[Client], object]] = [lambda client: client.status(), lambda client: next(client.events(after=0))]
        for call in calls:
            with self.assertRaises(ServiceUnreachable) as caught, Client(url) as client:
                call(client)
            error = caught.exception
            self.assertIsInstance(error, MillraceError)
            self.assertEqual((error.code, error.retryable, error.status, error.url), ("unreachable", True, 0, url))
            self.assertRegex(str(error), f"unreachable: .* {url}.*refused.*millrace serve.*MILLRACE_URL")
        self.assertLess(time.monotonic() - started, 5)

    def test_a_service_that_disappears_is_unreachable_after_the_timeout(self) -> None:
        with Client(script(Reply(hang_up=True)).url, timeout_s=2) as client:
            started = time.monotonic()
            with self.assertRaises(ServiceUnreachable):
                client.get("r-1")
            self.assertGreater(time.monotonic() - started, 0.1)

    def test_a_proxy_whose_service_stays_down_is_unreachable_with_its_status(self) -> None:
        with script(Reply(b"<html>", 502)) as service, Client(service.url, timeout_s=2) as client:
            with self.assertRaisesRegex(ServiceUnreachable, "returned 502: <html>") as caught:
                client.get("r-1")
            self.assertEqual((caught.exception.code, caught.exception.status), ("unreachable", 502))

    def test_an_unreachable_service_is_the_same_error_in_another_process(self) -> None:
        error = ServiceUnreachable("http://127.0.0.1:1", "no reply")
        again = pickle.loads(pickle.dumps(error))
        self.assertIsInstance(again, ServiceUnreachable)
        self.assertEqual((vars(again), str(again)), (vars(error), str(error)))

    def test_an_address_that_is_not_http_is_refused_when_the_client_is_made(self) -> None:
        for wrong in ("ftp://x", "localhost:80", "http://", "http://host:port"):
            with self.assertRaisesRegex(MillraceError, "not an http address"):
                Client(wrong)

    def test_the_api_key_is_sent_and_a_path_in_the_address_is_kept(self) -> None:
        with script(Reply(read_golden("status.json"))) as service, Client(f"{service.url}/mill/", "secret") as client:
            client.status()
            self.assertEqual(service.received[0].path, "/mill/v1/status")
            self.assertEqual(service.received[0].headers["authorization"], "Bearer secret")

    def test_one_thread_reuses_its_connection(self) -> None:
        with script(Reply(read_golden("status.json"))) as service, Client(service.url) as client:
            for _ in range(5):
                client.status()
            self.assertEqual(len({request.peer for request in service.received}), 1)

    def test_threads_that_share_a_client_each_get_their_own_replies(self) -> None:
        def reply_to(request: Received) -> Reply:
            return Reply({**read_golden("rollout.json"), "id": request.path.rsplit("/", 1)[1]})

        with FakeService(reply_to) as service, Client(service.url) as client, ThreadPoolExecutor(16) as pool:
            ids = [f"r-{index}" for index in range(300)]
            self.assertEqual([view.id for view in pool.map(client.get, ids)], ids)
            self.assertLessEqual(len({request.peer for request in service.received}), 16)

    def test_an_id_that_could_change_the_path_is_not_sent(self) -> None:
        with script(Reply()) as service, Client(service.url) as client:
            for wrong in ("", "../status", "a/b", "a b", "a\n", "-a", "x" * 129):
                with self.assertRaisesRegex(MillraceError, "is not an id"):
                    client.get(wrong)
            self.assertEqual(service.received, [])


class StopTest(unittest.TestCase):
    def hold(self) -> tuple[FakeService, threading.Event, threading.Event]:
        """A service that holds its reply until the second event is set."""
        reached, release = threading.Event(), threading.Event()
        self.addCleanup(release.set)

        def reply_to(_: Received) -> Reply:
            reached.set()
            release.wait(30)
            return Reply(hang_up=True)

        service = FakeService(reply_to)
        self.addCleanup(service.close)
        return service, reached, release

    def test_a_stop_ends_a_call_that_waits_for_its_reply(self) -> None:
        service, reached, _ = self.hold()
        stop = Stop()
        with Client(service.url) as client, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.wait, "r-1", stop=stop)
            self.assertTrue(reached.wait(10))
            started = time.monotonic()
            stop.stop()
            with self.assertRaises(MillraceError) as caught:
                waiting.result(10)
            self.assertEqual(caught.exception.code, "cancelled")
            self.assertLess(time.monotonic() - started, 5)

    def test_a_stop_ends_a_call_between_attempts_and_one_that_has_not_started(self) -> None:
        reached = threading.Event()

        def refuse(_: Received) -> Reply:
            reached.set()
            return refusal("too-busy", 429, retry_after="60")

        with FakeService(refuse) as service, Client(service.url) as client:
            stop = Stop()
            threading.Thread(target=lambda: reached.wait(10) and stop.stop()).start()
            started = time.monotonic()
            for _ in range(2):
                with self.assertRaisesRegex(MillraceError, "cancelled"):
                    client.get("r-1", stop=stop)
            self.assertLess(time.monotonic() - started, 5)
            self.assertEqual(len(service.received), 1)

    def test_closing_the_client_ends_its_calls(self) -> None:
        service, reached, _ = self.hold()
        client = Client(service.url)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.wait, "r-1")
            self.assertTrue(reached.wait(10))
            client.close()
            with self.assertRaisesRegex(MillraceError, "cancelled"):
                waiting.result(10)
        with self.assertRaisesRegex(MillraceError, "cancelled"):
            client.status()


if __name__ == "__main__":
    unittest.main()
