"""The client for asyncio: it has the same calls, and cancelling a task stops its call."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
import unittest
from typing import Iterator

from fakes.examples import read_golden
from fakes.fake_service import FakeService, Received, Reply
from rollouts.test_rollouts import to_event, to_view

from millrace import AsyncClient, Client
from millrace.async_client import AsyncBackends, AsyncBatches, AsyncPolicy
from millrace.batches.batches import Batches
from millrace.service.backends import Backends
from millrace.service.policy import Policy


class AsyncTest(unittest.TestCase):
    def test_every_call_has_the_same_arguments_as_the_blocking_one_except_stop(self) -> None:
        pairs = [(Client, AsyncClient), (Backends, AsyncBackends), (Policy, AsyncPolicy), (Batches, AsyncBatches)]
        for sync, twin in pairs:
            names = [name for name in vars(sync) if not name.startswith("_")]
            self.assertEqual(names, [name for name in vars(twin) if not name.startswith("_")])
            for name in names:
                wanted = [one for one in inspect.signature(getattr(sync, name)).parameters.values() if one.name != "stop"]
                self.assertEqual(wanted, list(inspect.signature(getattr(twin, name)).parameters.values()), name)

    def test_many_calls_run_at_the_same_time(self) -> None:
        together = threading.Barrier(32)

        def reply_to(request: Received) -> Reply:
            together.wait(30)
            return Reply(to_view(request.path.rsplit("/", 1)[1], "done"))

        async def main(url: str) -> None:
            async with AsyncClient(url) as client:
                ids = [f"r-{index}" for index in range(32)]
                views = await asyncio.gather(*(client.wait(id) for id in ids))
                self.assertEqual([view.id for view in views], ids)

        with FakeService(reply_to) as service:
            asyncio.run(main(service.url))

    def test_cancelling_a_call_closes_its_connection_at_once(self) -> None:
        reached, release = threading.Event(), threading.Event()

        def reply_to(_: Received) -> Reply:
            reached.set()
            release.wait(30)
            return Reply(hang_up=True)

        async def main(url: str) -> float:
            async with AsyncClient(url) as client:
                task = asyncio.create_task(client.wait("r-1"))
                await asyncio.to_thread(reached.wait, 10)
                started = time.monotonic()
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
            return time.monotonic() - started

        with FakeService(reply_to) as service:
            self.assertLess(asyncio.run(main(service.url)), 5)
            for thread in [one for one in threading.enumerate() if one.name.startswith("millrace_")]:
                thread.join(5)
                self.assertFalse(thread.is_alive())
            release.set()

    def test_results_and_events_can_be_iterated_and_abandoned(self) -> None:
        hold = threading.Event()

        def stream() -> Iterator[bytes]:
            yield to_event(11, "rollout-end", rollout_id="r-1") + to_event(12, "turn-end", rollout_id="r-2")
            hold.wait(30)

        def reply_to(request: Received) -> Reply:
            if request.path == "/v1/events":
                return Reply(chunks=stream())
            return Reply(to_view(request.path.rsplit("/", 1)[1], "done"))

        async def main(url: str) -> None:
            async with AsyncClient(url) as client:
                self.assertEqual([one.id async for one in client.results(["r-1"], after=10)], ["r-1"])
                kinds = []
                async for event in client.events(after=10):
                    kinds.append(event.kind)
                    if len(kinds) == 2:
                        break
                self.assertEqual(kinds, ["rollout-end", "turn-end"])
                waiting = asyncio.ensure_future(client.results(["r-1", "r-2"], after=11).__anext__())
                await asyncio.sleep(0)
                waiting.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waiting

        with FakeService(reply_to) as service:
            started = time.monotonic()
            asyncio.run(main(service.url))
            self.assertLess(time.monotonic() - started, 5)
            hold.set()

    def test_an_error_of_the_service_reaches_the_task(self) -> None:
        async def main(url: str) -> None:
            async with AsyncClient(url) as client:
                with self.assertRaisesRegex(Exception, "scenario is missing"):
                    await client.get("r-1")
                with self.assertRaisesRegex(Exception, "rollouts is missing"):
                    [one async for one in client.list()]

        with FakeService(lambda _: Reply({"id": "r-1"})) as service:
            asyncio.run(main(service.url))

    def test_the_event_loop_keeps_running_while_a_call_waits(self) -> None:
        release = threading.Event()

        def reply_to(_: Received) -> Reply:
            release.wait(30)
            return Reply(read_golden("status.json"))

        async def main(url: str) -> None:
            async with AsyncClient(url) as client:
                task = asyncio.create_task(client.status())
                for _ in range(100):
                    await asyncio.sleep(0)
                self.assertFalse(task.done())
                release.set()
                self.assertEqual((await task).last_event_id, 99)

        with FakeService(reply_to) as service:
            asyncio.run(main(service.url))


if __name__ == "__main__":
    unittest.main()
