"""What all adapters share: turns are exact, every rollout keeps its place, and a rollout counts once however many branches it has."""

from __future__ import annotations

import dataclasses
import math
import unittest
from array import array

from examples import make_branched, make_plain, make_rollout, make_sampled, make_segment

from millrace import PolicySpan, RoutedExperts, SamplingMask
from millrace.dapo import group_advantages
from millrace.export import to_rows

from millrace_trainers import Sampled, fill_rewards, fill_routed_experts, rollout_advantages
from millrace_trainers import to_routed_experts, to_sampled_from, to_train_rows, to_turns


class TurnsTest(unittest.TestCase):
    def test_each_turn_has_what_the_model_saw_and_what_it_sampled(self) -> None:
        one = make_sampled(
            "r",
            1.0,
            [
                make_segment("prompt", [1, 2]),
                make_segment("sampled", [3, 4], turn=1, policy_versions=PolicySpan(1, 1)),
                make_segment("observation", [5], turn=1),
                make_segment("sampled", [6], turn=2, policy_versions=PolicySpan(2, 2)),
            ],
        )
        assert one.trajectory is not None
        [row] = to_rows((one.rollout, one.trajectory))
        first, second = to_turns(row)
        self.assertEqual((first.prompt_ids, first.completion_ids, first.logprobs, first.last), ([1, 2], [3, 4], [-0.5, -1.0], False))
        self.assertEqual((second.prompt_ids, second.completion_ids, second.last), ([1, 2, 3, 4, 5], [6], True))
        self.assertEqual(second.loss_mask, [0, 0, 0, 0, 0, 1])
        self.assertEqual((first.policy_versions, second.policy_versions), (PolicySpan(1, 1), PolicySpan(2, 2)))

    def test_a_turn_that_a_pause_cut_is_one_turn(self) -> None:
        one = make_sampled(
            "r",
            1.0,
            [
                make_segment("prompt", [1]),
                make_segment("sampled", [2], turn=1, finish_reason="abort", policy_versions=PolicySpan(1, 1)),
                make_segment("sampled", [3], turn=1, finish_reason="stop", policy_versions=PolicySpan(2, 2)),
            ],
        )
        assert one.trajectory is not None
        [turn] = to_turns(to_rows((one.rollout, one.trajectory))[0])
        self.assertEqual((turn.prompt_ids, turn.completion_ids, turn.finish_reason), ([1], [2, 3], "stop"))
        self.assertEqual(turn.policy_versions, PolicySpan(1, 2))

    def test_every_sampled_token_of_a_branched_rollout_is_in_one_turn(self) -> None:
        one = make_branched("r", 1.0)
        assert one.trajectory is not None
        turns = [turn for row in to_rows((one.rollout, one.trajectory)) for turn in to_turns(row)]
        self.assertEqual([turn.completion_ids for turn in turns], [[3, 4], [5]])
        self.assertEqual([turn.last for turn in turns], [False, True])


class TrainRowsTest(unittest.TestCase):
    def test_every_rollout_keeps_its_place(self) -> None:
        lost = Sampled(make_rollout("r-2", None), None)
        rows = to_train_rows([make_plain("r-1", 1.0), lost, make_branched("r-3", 0.0), make_plain("r-4", None)], filler_id=7)
        self.assertEqual([row.rollout.id for row in rows], ["r-1", "r-2", "r-3", "r-3", "r-4"])
        self.assertEqual([row.reward for row in rows], [1.0, None, 0.0, 0.0, None])
        self.assertEqual([row.placeholder for row in rows], [False, True, False, False, True])
        self.assertEqual([row.last for row in rows], [True, True, False, True, True])
        for row in rows:
            self.assertEqual(len(row.response_ids), len(row.response_mask))
            self.assertEqual(len(row.response_ids), len(row.response_logprobs))

    def test_a_placeholder_has_a_prompt_and_trains_nothing(self) -> None:
        lost = Sampled(make_rollout("r-2", None), None)
        for sampled in ([make_plain("r-1", 1.0), lost], [lost, make_plain("r-1", 1.0)]):
            [row] = [one for one in to_train_rows(sampled, filler_id=7) if one.placeholder]
            self.assertEqual((row.prompt_ids, row.response_ids, row.response_mask), ([1, 2], [7], [0]))
        [alone] = to_train_rows([lost], filler_id=7)
        self.assertEqual((alone.prompt_ids, alone.response_mask), ([7], [0]))

    def test_a_scored_rollout_that_sampled_nothing_keeps_its_reward(self) -> None:
        [row] = to_train_rows([make_sampled("r", 0.0, [make_segment("prompt", [1])])])
        self.assertEqual((row.placeholder, row.reward, row.response_mask), (True, 0.0, [0]))

    def test_long_responses_are_cut_with_their_masks(self) -> None:
        [row] = to_train_rows([make_plain("r", 1.0)], max_response=1)
        self.assertEqual((row.response_ids, row.response_mask, row.response_logprobs), ([3], [1], [-0.5]))


class AdvantagesTest(unittest.TestCase):
    def test_a_rollout_counts_once_however_many_rows_it_has(self) -> None:
        rows = to_train_rows([make_branched("a", 1.0), make_plain("b", 0.0), make_plain("c", 0.0), make_plain("d", None)])
        found = rollout_advantages(rows, ddof=1)
        deviation = (((1 - 1 / 3) ** 2 + 2 * (1 / 3) ** 2) / 2) ** 0.5
        self.assertAlmostEqual(found[0], (1 - 1 / 3) / deviation)
        self.assertEqual(found[0], found[1])
        self.assertAlmostEqual(found[2], (-1 / 3) / deviation)
        self.assertEqual(found[4], 0.0)

    def test_the_formula_and_its_default_are_those_of_the_client(self) -> None:
        rewards = [1.0, 0.0, 0.25, 0.0]
        rows = to_train_rows([make_plain(str(index), reward) for index, reward in enumerate(rewards)])
        self.assertEqual(rollout_advantages(rows), group_advantages(rewards))
        self.assertEqual(rollout_advantages(rows, ddof=1), group_advantages(rewards, ddof=1))

    def test_a_reward_that_is_not_finite_is_refused(self) -> None:
        for reward in (math.nan, math.inf, -math.inf):
            rows = to_train_rows([make_plain("a", 1.0), make_plain("b", reward)])
            for compute in (rollout_advantages, fill_rewards):
                with self.assertRaisesRegex(ValueError, "reward 1 of the group is"):
                    compute(rows)

    def test_groups_are_apart_and_equal_rewards_are_no_signal(self) -> None:
        groups = [make_plain("a", 1.0, "g"), make_plain("b", 1.0, "g"), make_branched("c", 1.0, "h"), make_plain("d", 0.0, "h")]
        found = rollout_advantages(to_train_rows(groups), scale="none")
        self.assertEqual(found, [0.0, 0.0, 0.5, 0.5, -0.5])

    def test_a_group_with_one_scored_rollout_teaches_nothing(self) -> None:
        self.assertEqual(rollout_advantages(to_train_rows([make_plain("a", 1.0), make_plain("b", None)])), [0.0, 0.0])


class ReplayTest(unittest.TestCase):
    def test_experts_of_all_segments_are_joined_and_cut_with_the_response(self) -> None:
        def experts(first: int, rows: int) -> RoutedExperts:
            return RoutedExperts(first, (2, 1), array("B", range(2 * first, 2 * (first + rows))))

        sampled = dataclasses.replace(make_segment("sampled", [3, 4], turn=1), routed_experts=experts(0, 3))
        more = dataclasses.replace(make_segment("sampled", [6], turn=2), routed_experts=experts(3, 2))
        one = make_sampled("r", 1.0, [make_segment("prompt", [1, 2]), sampled, make_segment("observation", [5], turn=1), more])
        [row] = to_train_rows([one])
        self.assertEqual(to_routed_experts(row), [[[0], [1]], [[2], [3]], [[4], [5]], [[6], [7]], [[8], [9]]])
        [cut] = to_train_rows([one], max_response=2)
        self.assertEqual(to_routed_experts(cut), [[[0], [1]], [[2], [3]], [[4], [5]]])
        self.assertIsNone(to_routed_experts(to_train_rows([make_plain("r", 1.0)])[0]))

    def test_in_a_batch_with_experts_a_row_that_trains_nothing_has_those_of_one_token(self) -> None:
        experts = RoutedExperts(0, (2, 2), array("B", range(12)))
        sampled = dataclasses.replace(make_segment("sampled", [3, 4], turn=1), routed_experts=experts)
        scored = make_sampled("a", 1.0, [make_segment("prompt", [1, 2]), sampled])
        unscored, lost = make_plain("u", None), Sampled(make_rollout("l", None), None)
        found = fill_routed_experts(to_train_rows([unscored, scored, lost]))
        assert found is not None
        self.assertEqual([len(one) for one in found], [1, 3, 1])
        self.assertEqual(found[0], [[[0, 1], [0, 1]]])
        self.assertIsNone(fill_routed_experts(to_train_rows([unscored, make_plain("b", 1.0)])))
        with self.assertWarnsRegex(UserWarning, "rollout b was sampled without"):
            self.assertIsNone(fill_routed_experts(to_train_rows([scored, make_plain("b", 1.0)])))

    def test_sampling_masks_have_an_empty_span_where_nothing_was_sampled(self) -> None:
        mask = SamplingMask(array("i", [2, 1]), array("i", [3, 8, 4]))
        sampled = dataclasses.replace(make_segment("sampled", [3, 4], turn=1), sampling_mask=mask)
        one = make_sampled("r", 1.0, [make_segment("prompt", [1]), sampled, make_segment("observation", [5], turn=1)])
        [row] = to_train_rows([one])
        self.assertEqual(to_sampled_from(row), ([3, 8, 4], [0, 2, 3, 3]))
        self.assertIsNone(to_sampled_from(to_train_rows([make_plain("r", 1.0)])[0]))


if __name__ == "__main__":
    unittest.main()
