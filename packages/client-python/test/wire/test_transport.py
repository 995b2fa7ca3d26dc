"""Calls over a service that is busy, away, broken or slow, and what the caller sees of it."""

from __future__ import annotations

import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from fakes.examples import read_golden
from fakes.fake_service import Asked, FakeService, Reply, refusal

from millrace import Client, MillraceError, Stop


def script(*replies: Reply) -> FakeService:
    """Answers in turn, the last one for ever."""
    left = list(replies)
    return FakeService(lambda _: left.pop(0) if len(left) > 1 else left[0])


class TransportTest(unittest.TestCase):
    def test_a_busy_or_absent_service_is_tried_again(self) -> None:
        good = Reply(read_golden("rollout.json"))
        busy, away = refusal("too-busy", 429, retry_after="0.01"), refusal("not-running", 503)
        for bad in (busy, away, Reply(hang_up=True), Reply(b"<html>", 502)):
            with self.subTest(bad), script(bad, bad, good) as service, Client(service.url) as client:
                self.assertEqual(client.get("r-1").id, "r-1")
                self.assertEqual(len(service.asked), 3)

    def test_retry_after_is_kept(self) -> None:
        busy = refusal("too-busy", 429, retry_after="0.3")
        with script(busy, Reply(read_golden("rollout.json"))) as service, Client(service.url) as client:
            started = time.monotonic()
            client.get("r-1")
            self.assertGreaterEqual(time.monotonic() - started, 0.3)

    def test_a_service_that_stays_away_is_given_up_after_the_timeout_with_its_own_error(self) -> None:
        with script(refusal("not-running", 503)) as service, Client(service.url, timeout_s=0.3) as client:
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
            self.assertEqual(len(service.asked), 1)

    def test_what_cannot_be_read_is_an_error_that_shows_it(self) -> None:
        with script(Reply({"id": "r-1"})) as service, Client(service.url) as client:
            with self.assertRaisesRegex(MillraceError, r"GET http://.*/v1/rollouts/r-1 answered .*scenario is missing.*r-1"):
                client.get("r-1")
        with script(Reply(b"not json")) as service, Client(service.url) as client:
            with self.assertRaisesRegex(MillraceError, "not json"):
                client.status()

    def test_a_wrong_address_is_told_at_once(self) -> None:
        with script(Reply()) as service:
            url = service.url
        started = time.monotonic()
        with self.assertRaisesRegex(MillraceError, f"no answer from GET {url}/v1/status"):
            Client(url).status()
        self.assertLess(time.monotonic() - started, 5)
        for wrong in ("ftp://x", "localhost:80", "http://"):
            with self.assertRaisesRegex(MillraceError, "not an http address"):
                Client(wrong)

    def test_the_key_is_sent_and_a_prefix_of_the_address_is_kept(self) -> None:
        with script(Reply(read_golden("status.json"))) as service, Client(f"{service.url}/mill/", "secret") as client:
            client.status()
            self.assertEqual(service.asked[0].path, "/mill/v1/status")
            self.assertEqual(service.asked[0].headers["authorization"], "Bearer secret")

    def test_one_thread_keeps_its_connection(self) -> None:
        with script(Reply(read_golden("status.json"))) as service, Client(service.url) as client:
            for _ in range(5):
                client.status()
            self.assertEqual(len({asked.peer for asked in service.asked}), 1)

    def test_many_threads_share_a_client_and_none_sees_the_answer_of_another(self) -> None:
        def answer(asked: Asked) -> Reply:
            return Reply({**read_golden("rollout.json"), "id": asked.path.rsplit("/", 1)[1]})

        with FakeService(answer) as service, Client(service.url) as client, ThreadPoolExecutor(16) as pool:
            ids = [f"r-{index}" for index in range(300)]
            self.assertEqual([view.id for view in pool.map(client.get, ids)], ids)
            self.assertLessEqual(len({asked.peer for asked in service.asked}), 16)

    def test_an_id_that_could_be_another_path_is_not_sent(self) -> None:
        with script(Reply()) as service, Client(service.url) as client:
            for wrong in ("", "../status", "a/b", "a b", "a\n", "-a", "x" * 129):
                with self.assertRaisesRegex(MillraceError, "is not an id"):
                    client.get(wrong)
            self.assertEqual(service.asked, [])


class StopTest(unittest.TestCase):
    def hold(self) -> tuple[FakeService, threading.Event, threading.Event]:
        """A service that keeps its answer back until the second event."""
        reached, release = threading.Event(), threading.Event()
        self.addCleanup(release.set)

        def answer(_: Asked) -> Reply:
            reached.set()
            release.wait(30)
            return Reply(hang_up=True)

        service = FakeService(answer)
        self.addCleanup(service.close)
        return service, reached, release

    def test_a_stop_ends_a_call_that_waits_for_its_answer(self) -> None:
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

    def test_a_stop_ends_a_call_between_two_attempts_and_one_that_has_not_begun(self) -> None:
        with script(refusal("too-busy", 429, retry_after="60")) as service, Client(service.url) as client:
            stop = Stop()
            threading.Timer(0.1, stop.stop).start()
            started = time.monotonic()
            for _ in range(2):
                with self.assertRaisesRegex(MillraceError, "cancelled"):
                    client.get("r-1", stop=stop)
            self.assertLess(time.monotonic() - started, 5)
            self.assertEqual(len(service.asked), 1)

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
