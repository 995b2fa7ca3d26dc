"""Batches and the policy: groups arrive in order and once, are acknowledged after use, and a pause waits until nothing is sampled."""

from __future__ import annotations

import hashlib
import json
import struct
import unittest
from typing import Any

from fakes.examples import GOLDEN, read_golden
from fakes.fake_service import FakeService, Received, Reply

from millrace import Client, MillraceError, trajectory_from_json
from millrace.batches.batch import BatchView, group_from_json, group_page_to_json, group_to_json
from millrace.batches.group_binary import group_page_from_binary
from millrace.wire.codec import WireError, from_wire, to_wire

WASTE = {"rollouts": 1, "tokens": 100, "seconds": 2.5}
BATCH = {
    "id": "b-1",
    "series": "s-1",
    "state": "open",
    "scenario": "math",
    "group_size": 2,
    "target": 8,
    "groups": {"open": 2, "delivered": 3, "uniform": 1, "failed": 0, "surplus": 0, "stale": 0},
    "carried": 1,
    "tasks": {"given": 10, "begun": 6, "closed": False},
    "informative_share": 0.75,
    "mean_reward": None,
    "wasted": {"uniform": WASTE, "failed": WASTE, "surplus": WASTE, "stale": WASTE},
    "created_at": "2026-01-02T03:04:05.678Z",
    "ended_at": None,
    "metadata": {"step": 7},
}
POLICY = {
    "state": "running",
    "mode": None,
    "policy_version": 3,
    "adapter": None,
    "owner": None,
    "generating": 4,
    "since": "2026-01-02T03:04:05.678Z",
}


def make_group(seq: int, *, trajectories: bool = True) -> dict[str, Any]:
    group = {
        "seq": seq,
        "id": f"g-{seq}",
        "batch": "b-1",
        "task_index": seq - 1,
        "task": {"question": "1 + 1"},
        "rewards": [0.5],
        "rollouts": [read_golden("rollout.json")],
        "policy_versions": {"first": 3, "last": 4},
        "carried": False,
        "delivered_at": "2026-01-02T03:04:05.678Z",
    }
    return {**group, "trajectories": [read_golden("trajectory.json")]} if trajectories else group


def to_binary(page: Any) -> bytes:
    body = (GOLDEN / "trajectory.mrt").read_bytes()
    head = json.dumps({"page": page, "trajectories": [1 for _ in page["groups"]]}).encode()
    start = b"MRG3" + to_part(head)
    return start + hashlib.sha256(start).digest() + b"".join(to_part(body) for _ in page["groups"])


def to_part(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data + bytes(-len(data) % 4)


class Stream:
    """The groups of a batch with `count` of them, two a page, and the acks that arrived."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.acks: list[int] = []

    def reply_to(self, request: Received) -> Reply:
        if request.path.endswith("/ack"):
            self.acks.append(request.body["through"])
            return Reply(request.body)
        after = int(request.query.get("after", max(self.acks, default=0)))
        some = [make_group(seq, trajectories=False) for seq in range(after + 1, min(after + 2, self.count) + 1)]
        page = {"groups": some, "next": after + len(some), "state": "met"}
        return Reply(to_binary(page) if request.headers["accept"].endswith("groups") else page)


class BatchesTest(unittest.TestCase):
    def test_batches_and_groups_round_trip(self) -> None:
        self.assertEqual(to_wire(from_wire(BatchView, BATCH)), BATCH)
        for trajectories in (True, False):
            group = make_group(1, trajectories=trajectories)
            self.assertEqual(group_to_json(group_from_json(group)), group)
        with self.assertRaisesRegex(WireError, "0 trajectories for 1 rollouts"):
            group_from_json({**make_group(1), "trajectories": []})

    def test_groups_come_in_order_over_pages_until_the_batch_has_ended(self) -> None:
        stream = Stream(5)
        with FakeService(stream.reply_to) as service, Client(service.url) as client:
            groups = list(client.batches.groups("b-1", limit=2))
            self.assertEqual([one.seq for one in groups], [1, 2, 3, 4, 5])
            assert groups[0].trajectories is not None
            self.assertEqual(list(groups[0].trajectories[0].segments[0].token_ids), [151644, 872, 198])
            self.assertEqual(service.received[1].query, {"limit": "2", "wait": "25", "after": "2"})
            self.assertEqual(groups[0].trajectories[0], trajectory_from_json(read_golden("trajectory.json")))
            self.assertEqual(stream.acks, [])

    def test_groups_come_without_trajectories_on_request(self) -> None:
        with FakeService(Stream(3).reply_to) as service, Client(service.url) as client:
            groups = list(client.batches.groups("b-1", trajectories=False))
            self.assertEqual([(one.seq, one.trajectories) for one in groups], [(1, None), (2, None), (3, None)])

    def test_bytes_that_are_not_a_whole_page_are_refused(self) -> None:
        page = {"groups": [make_group(1, trajectories=False)], "next": 1, "state": "open"}
        data = to_binary(page)
        self.assertEqual(group_page_to_json(group_page_from_binary(data)), {**page, "groups": [make_group(1)]})
        for end in range(len(data)):
            with self.assertRaises((WireError, MillraceError), msg=f"cut at {end}"):
                group_page_from_binary(data[:end])
        for wrong in (data + bytes(4), b"MRT1" + data[4:]):
            with self.assertRaises(WireError):
                group_page_from_binary(wrong)

    def test_a_page_that_was_changed_on_its_way_is_refused(self) -> None:
        page = {"groups": [make_group(1, trajectories=False)], "next": 1, "state": "open"}
        data = to_binary(page)
        other = {**page, "groups": [{**make_group(1, trajectories=False), "rollouts": [{**read_golden("rollout.json"), "attempt": 9}]}]}
        for wrong in (data.replace(b"[0.5]", b"[1.5]"), data[:-1] + b"x", to_binary(other)):
            with self.assertRaisesRegex(MillraceError, "trajectory-corrupt"):
                group_page_from_binary(wrong)

    def test_a_rollout_whose_trajectory_is_lost_leaves_its_group(self) -> None:
        rollout = read_golden("rollout.json")
        error = {"code": "trajectory-corrupt", "message": "changed", "blame": "service", "retryable": False}
        group = make_group(1)
        group["rollouts"].append({**rollout, "id": "r-9"})
        group["rewards"].append(1.0)
        group["trajectories"].append({"rollout_id": "r-9", "error": error})
        read = group_from_json(group)
        self.assertEqual(([one.id for one in read.rollouts], read.rewards), ([rollout["id"]], (0.5,)))
        self.assertEqual([(one.rollout_id, one.error.code) for one in read.lost], [("r-9", "trajectory-corrupt")])
        head = {"page": {"groups": [{**group, "trajectories": None}], "next": 1, "state": "open"}, "trajectories": [2]}
        start = b"MRG3" + to_part(json.dumps(head).encode())
        lost = json.dumps(group["trajectories"][1]).encode()
        parts = to_part((GOLDEN / "trajectory.mrt").read_bytes()) + to_part(lost)
        binary = group_page_from_binary(start + hashlib.sha256(start).digest() + parts).groups[0]
        self.assertEqual((binary.rollouts, binary.rewards, len(binary.lost)), (read.rollouts, read.rewards, 1))

    def test_a_group_is_acknowledged_only_when_the_next_is_requested(self) -> None:
        stream = Stream(3)
        with FakeService(stream.reply_to) as service, Client(service.url) as client:
            groups = client.batches.groups("b-1", consumer="trainer")
            next(groups)
            self.assertEqual(stream.acks, [])
            next(groups)
            self.assertEqual(stream.acks, [1])

    def test_a_restarted_consumer_continues_after_its_last_ack(self) -> None:
        stream = Stream(5)
        with FakeService(stream.reply_to) as service, Client(service.url) as client:
            seen = []
            for group in client.batches.groups("b-1", consumer="trainer"):
                if group.seq == 3:
                    break  # It dies while it handles the third.
                seen.append(group.seq)
            seen += [one.seq for one in client.batches.groups("b-1", consumer="trainer")]
            self.assertEqual(seen, [1, 2, 3, 4, 5])
            self.assertEqual(stream.acks, [1, 2, 3, 4, 5])
            self.assertEqual(list(client.batches.groups("b-1", consumer="trainer")), [])

    def test_with_ack_false_only_the_caller_acknowledges(self) -> None:
        stream = Stream(2)
        with FakeService(stream.reply_to) as service, Client(service.url) as client:
            list(client.batches.groups("b-1", consumer="trainer", ack=False))
            self.assertEqual(stream.acks, [])
            self.assertEqual(client.batches.ack("b-1", "trainer", 2).through, 2)

    def test_a_batch_request_that_is_repeated_keeps_its_generated_id(self) -> None:
        replies = [Reply(hang_up=True), Reply(BATCH)]
        with FakeService(lambda _: replies.pop(0)) as service, Client(service.url) as client:
            client.batches.create({"scenario": "math", "group_size": 2, "target": 8})
            self.assertEqual(service.received[0].body, service.received[1].body)
            self.assertTrue(service.received[0].body["id"].startswith("b-"))

    def test_appended_tasks_that_are_repeated_keep_their_key(self) -> None:
        replies = [Reply(hang_up=True), Reply(BATCH), Reply(BATCH)]
        with FakeService(lambda _: replies.pop(0)) as service, Client(service.url) as client:
            client.batches.append_tasks("b-1", [{"question": "1"}])
            client.batches.append_tasks("b-1", [{"question": "1"}], closed=True)
            first, again, other = (request.body for request in service.received)
            self.assertEqual(first, again)
            self.assertNotEqual(first["key"], other["key"])

    def test_wait_polls_until_the_end_and_list_reads_every_page(self) -> None:
        states = ["open", "met"]
        with FakeService(lambda _: Reply({**BATCH, "state": states.pop(0)})) as service, Client(service.url) as client:
            self.assertEqual(client.batches.wait("b-1").state, "met")
        pages = [{"batches": [BATCH], "next": "b-1"}, {"batches": [BATCH], "next": None}]
        with FakeService(lambda _: Reply(pages.pop(0))) as service, Client(service.url) as client:
            self.assertEqual(len(list(client.batches.list(series="s-1"))), 2)


class PolicyTest(unittest.TestCase):
    def test_a_pause_returns_when_nothing_is_being_sampled(self) -> None:
        views = [("pausing", 3), ("pausing", 1), ("paused", 0)]

        def reply_to(_: Received) -> Reply:
            state, generating = views.pop(0)
            return Reply({**POLICY, "state": state, "mode": "wait", "generating": generating})

        with FakeService(reply_to) as service, Client(service.url) as client:
            view = client.policy.pause()
            self.assertEqual((view.state, view.generating), ("paused", 0))
            self.assertEqual([(request.method, request.query) for request in service.received], [("POST", {"wait": "25"})] * 3)

    def test_a_pause_that_need_not_settle_returns_at_once(self) -> None:
        with FakeService(lambda _: Reply({**POLICY, "state": "pausing", "mode": "abort"})) as service, Client(service.url) as client:
            self.assertEqual(client.policy.pause("abort", settle=False).state, "pausing")
            self.assertEqual([request.body for request in service.received], [{"mode": "abort"}])

    def test_resume_names_the_version(self) -> None:
        with FakeService(lambda _: Reply(POLICY)) as service, Client(service.url) as client:
            client.policy.resume(4, caches_flushed=False)
            client.policy.resume()
            wanted = [{"policy_version": 4, "caches_flushed": False}, {"caches_flushed": True}]
            self.assertEqual([request.body for request in service.received], wanted)

    def test_resume_names_an_adapter_or_returns_to_the_base_model(self) -> None:
        with FakeService(lambda _: Reply({**POLICY, "adapter": "step-4"})) as service, Client(service.url) as client:
            self.assertEqual(client.policy.resume(4, adapter="step-4").adapter, "step-4")
            client.policy.resume(base_model=True, salt_caches=False)
            wanted = [
                {"policy_version": 4, "caches_flushed": True, "adapter": "step-4"},
                {"caches_flushed": True, "salt_caches": False, "adapter": None},
            ]
            self.assertEqual([request.body for request in service.received], wanted)
            with self.assertRaisesRegex(ValueError, "exclude each other"):
                client.policy.resume(adapter="step-4", base_model=True)


if __name__ == "__main__":
    unittest.main()
