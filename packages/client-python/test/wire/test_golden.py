"""The golden files of the protocol: they round-trip unchanged, so this client has every field that the service sends."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import unittest
from array import array
from typing import Any, Callable

from fakes.examples import GOLDEN, make_trajectory, read_golden

from millrace import (
    MillraceError,
    PolicyView,
    RolloutView,
    ServiceStatus,
    Trajectory,
    WireError,
    trajectory_from_binary,
    trajectory_from_json,
    trajectory_to_binary,
    trajectory_to_json,
)
from millrace.batches.batch import AckReply, BatchList, group_page_from_json, group_page_to_json
from millrace.batches.group_binary import group_page_from_binary
from millrace.error import error_from_body
from millrace.evaluations.evaluation import EvaluationList, EvaluationTaskPage
from millrace.rollouts.rollout import CancelReply, Forks, RolloutList, SavedTurnList, SubmitReply
from millrace.service.machines import MachineList, WorkerSettings
from millrace.service.status import BackendList, Event, LeaveReply
from millrace.service.trainer import TrainerSampleList, TrainerStepList
from millrace.wire.codec import from_wire, to_wire

KINDS = {
    "rollout.json": RolloutView,
    "failed-rollout.json": RolloutView,
    "waiting-rollout.json": RolloutView,
    "rollout-list.json": RolloutList,
    "submit-reply.json": SubmitReply,
    "fork-reply.json": Forks,
    "saved-turns.json": SavedTurnList,
    "cancel-reply.json": CancelReply,
    "backend-list.json": BackendList,
    "leave-reply.json": LeaveReply,
    "machine-list.json": MachineList,
    "worker-settings.json": WorkerSettings,
    "status.json": ServiceStatus,
    "event.json": Event,
    "batch-list.json": BatchList,
    "ack-reply.json": AckReply,
    "evaluation-list.json": EvaluationList,
    "evaluation-tasks.json": EvaluationTaskPage,
    "policy.json": PolicyView,
    "trainer-steps.json": TrainerStepList,
    "trainer-samples.json": TrainerSampleList,
}

TRAJECTORIES = ("trajectory", "branched-trajectory")


class GoldenTest(unittest.TestCase):
    def test_every_golden_file_round_trips(self) -> None:
        for name, kind in KINDS.items():
            with self.subTest(name):
                golden = read_golden(name)
                self.assertEqual(to_wire(from_wire(kind, golden)), golden)

    def test_every_golden_file_has_a_test(self) -> None:
        trajectories = {f"{name}.{form}" for name in TRAJECTORIES for form in ("json", "mrt")}
        others = {"error.json", "group-page.json", "group-page.mrg", "textless-trajectory.json"} | trajectories
        self.assertEqual({path.name for path in GOLDEN.iterdir()}, set(KINDS) | others)

    def test_an_error_has_the_fields_of_its_body(self) -> None:
        error = error_from_body(read_golden("error.json"), 429)
        assert error is not None
        seen = (error.code, error.message, error.blame, error.retryable, error.status, error.details)
        self.assertEqual(seen, ("too-busy", "the queue is full", "service", True, 429, {"retry_after_ms": 1000}))
        self.assertEqual(str(error), "too-busy: the queue is full")

    def test_an_error_can_be_pickled(self) -> None:
        error = MillraceError("not-found", "no such rollout", blame="caller", status=404, details={"id": "r"})
        self.assertEqual(vars(pickle.loads(pickle.dumps(error))), vars(error))

    def test_a_field_of_a_newer_service_is_ignored(self) -> None:
        golden = read_golden("rollout.json")
        newer = {**copy.deepcopy(golden), "mood": "good"}
        newer["result"]["tokens"]["dreamt"] = 3
        self.assertEqual(to_wire(from_wire(RolloutView, newer)), golden)

    def test_a_reward_is_a_float_even_if_json_writes_an_integer(self) -> None:
        view = from_wire(RolloutView, {**read_golden("rollout.json"), "reward": 1})
        self.assertIs(type(view.reward), float)

    def test_a_missing_or_wrongly_typed_field_is_named(self) -> None:
        golden = read_golden("rollout.json")
        del golden["result"]["tokens"]["sampled"]
        with self.assertRaisesRegex(WireError, r"RolloutView\.result\.tokens\.sampled is missing"):
            from_wire(RolloutView, golden)
        with self.assertRaisesRegex(WireError, r"RolloutView\.attempt: expected int, not 'two'"):
            from_wire(RolloutView, {**read_golden("rollout.json"), "attempt": "two"})
        with self.assertRaisesRegex(WireError, r"RolloutView\.failures\[0\]: expected an object"):
            from_wire(RolloutView, {**read_golden("rollout.json"), "failures": [1]})
        nonsense: list[Any] = [None, [], "r-1", True]
        for wrong in nonsense:
            with self.assertRaises(WireError):
                from_wire(RolloutView, wrong)


class GroupPageTest(unittest.TestCase):
    def test_both_forms_of_the_golden_page_of_groups_are_equal(self) -> None:
        golden = read_golden("group-page.json")
        page = group_page_from_json(golden)
        self.assertEqual(group_page_to_json(page), golden)
        self.assertEqual(group_page_from_binary((GOLDEN / "group-page.mrg").read_bytes()), page)


class TrajectoryTest(unittest.TestCase):
    def test_both_forms_of_the_golden_trajectories_are_equal_and_round_trip_bit_for_bit(self) -> None:
        for name in TRAJECTORIES:
            with self.subTest(name):
                data = (GOLDEN / f"{name}.mrt").read_bytes()
                trajectory = trajectory_from_binary(data)
                self.assertEqual(trajectory_from_json(read_golden(f"{name}.json")), trajectory)
                self.assertEqual(trajectory_to_json(trajectory), read_golden(f"{name}.json"))
                self.assertEqual(trajectory_to_binary(trajectory), data)

    def test_a_trajectory_without_text_keeps_its_numbers(self) -> None:
        golden = read_golden("textless-trajectory.json")
        textless, whole = trajectory_from_json(golden), trajectory_from_json(read_golden("trajectory.json"))
        self.assertEqual((textless.text_dropped, whole.text_dropped), (True, None))
        self.assertEqual([one.token_ids for one in textless.segments], [one.token_ids for one in whole.segments])
        self.assertEqual(trajectory_to_json(textless), golden)
        self.assertEqual(trajectory_from_binary(trajectory_to_binary(textless)), textless)

    def test_routed_experts_keep_their_width(self) -> None:
        segments = trajectory_from_json(read_golden("branched-trajectory.json")).segments
        narrow, wide = segments[-2].routed_experts, segments[-1].routed_experts
        assert narrow is not None and wide is not None
        self.assertEqual((narrow.first, narrow.shape, narrow.ids), (0, (1, 2), array("B", [0, 255, 1, 2, 3, 4])))
        self.assertEqual((wide.first, wide.shape, wide.ids), (3, (2,), array("H", [256, 1])))

    def test_a_sampling_mask_has_a_list_of_ids_for_each_token(self) -> None:
        mask = trajectory_from_json(read_golden("branched-trajectory.json")).segments[-1].sampling_mask
        assert mask is not None
        self.assertEqual(mask.rows(), [[9, 151644, 11]])

    def test_the_trainable_share_counts_every_sampled_token_once(self) -> None:
        self.assertEqual(make_trajectory().trainable_share, 2 / 8)

    def test_reasoning_is_its_own_field_of_a_message(self) -> None:
        message = make_trajectory().segments[1].head.messages[0]
        self.assertEqual((message.content, message.reasoning), ("let me look", "I do not know yet."))

    def test_ids_and_logprobs_are_arrays_of_four_bytes(self) -> None:
        sampled = make_trajectory().segments[1]
        self.assertEqual(sampled.token_ids, array("i", [1, 2147483647]))
        self.assertEqual(sampled.logprobs, array("f", [-0.1, -1.5]))

    def test_logprobs_that_are_not_finite_survive_the_binary_form(self) -> None:
        trajectory = make_trajectory()
        odd = dataclasses.replace(trajectory.segments[1], logprobs=array("f", [float("nan"), float("-inf")]))
        data = trajectory_to_binary(dataclasses.replace(trajectory, segments=(odd,)))
        self.assertEqual(trajectory_to_binary(trajectory_from_binary(data)), data)

    def test_bytes_that_are_not_a_whole_trajectory_are_refused(self) -> None:
        data = (GOLDEN / "branched-trajectory.mrt").read_bytes()
        for end in range(len(data)):
            with self.assertRaises((WireError, MillraceError), msg=f"cut at {end}"):
                trajectory_from_binary(data[:end])
        for wrong in (data + bytes(4), data[:4] + b"\xff\xff\xff\xff" + data[8:]):
            with self.assertRaisesRegex(MillraceError, "trajectory-corrupt"):
                trajectory_from_binary(wrong)

    def test_every_flipped_bit_of_the_binary_form_is_refused(self) -> None:
        data = (GOLDEN / "branched-trajectory.mrt").read_bytes()
        for bit in range(8 * len(data)):
            flipped = bytearray(data)
            flipped[bit >> 3] ^= 1 << (bit & 7)
            with self.assertRaises(WireError if bit < 32 else MillraceError, msg=f"bit {bit}"):
                trajectory_from_binary(bytes(flipped))

    def test_the_binary_form_of_older_services_is_read_without_a_checksum(self) -> None:
        data = (GOLDEN / "trajectory.mrt").read_bytes()
        old = b"MRT1" + data[4:-32]
        self.assertEqual(trajectory_from_binary(old), trajectory_from_binary(data))
        with self.assertRaisesRegex(WireError, "bytes of numbers"):
            trajectory_from_binary(old + bytes(4))

    def test_a_changed_json_form_is_refused_and_one_without_a_checksum_is_read(self) -> None:
        def read(change: Callable[[Any], object]) -> Trajectory:
            golden = read_golden("branched-trajectory.json")
            change(golden)
            return trajectory_from_json(golden)

        changes: list[Callable[[Any], object]] = [
            lambda one: one.update(rollout_id="other"),
            lambda one: one.update(attempt=9),
            lambda one: one["segments"][0].update(text="other"),
            lambda one: one["segments"][0]["token_ids"].reverse(),
            lambda one: one["segments"][-1]["logprobs"].__setitem__(0, -0.5),
            lambda one: one["segments"][-1]["sampling_mask"][0].pop(),
            lambda one: one["segments"].pop(),
            lambda one: one.update(sha256="0" * 64),
        ]
        for index, change in enumerate(changes):
            with self.subTest(index), self.assertRaisesRegex(MillraceError, "trajectory-corrupt"):
                read(change)
        self.assertEqual(read(lambda one: one.pop("sha256")), read(lambda one: None))

    def test_half_of_a_surrogate_pair_and_a_negative_zero_have_the_checksum_of_what_json_carries(self) -> None:
        trajectory = make_trajectory()
        head = dataclasses.replace(trajectory.segments[1].head, text="a\ud800")
        odd = dataclasses.replace(trajectory.segments[1], head=head, logprobs=array("f", [-0.0, -1.0]))
        wire = trajectory_to_json(dataclasses.replace(trajectory, segments=(odd,)))
        wire["segments"][0]["logprobs"] = [0, -1]
        self.assertEqual(trajectory_from_json(json.loads(json.dumps(wire))).segments[0].head.text, "a\ud800")

    def test_a_sampled_segment_without_a_logprob_for_each_id_is_refused(self) -> None:
        golden = read_golden("trajectory.json")
        golden["segments"][1]["logprobs"] = [-0.1]
        with self.assertRaisesRegex(WireError, r"segments\[1\]: 2 ids of kind sampled with 1 logprobs"):
            trajectory_from_json(golden)
        golden["segments"][1]["logprobs"] = [-0.1, None]
        with self.assertRaisesRegex(WireError, r"segments\[1\]: token_ids or logprobs are not numbers"):
            trajectory_from_json(golden)


if __name__ == "__main__":
    unittest.main()
