"""The formulas of DAPO (arXiv 2503.14476) against results computed by hand."""

from __future__ import annotations

import math
import unittest

from millrace.dapo import (
    clip_higher,
    group_advantages,
    is_informative,
    keep_informative,
    overlong_penalty,
    token_level_loss,
)


class AdvantageTest(unittest.TestCase):
    def test_a_reward_that_is_not_finite_is_refused_and_never_a_zero(self) -> None:
        for reward in (math.nan, math.inf, -math.inf):
            for compute in (group_advantages, is_informative):
                with self.assertRaisesRegex(ValueError, "reward 1 of the group is"):
                    compute([1.0, reward, 0.0])

    def test_rewards_are_normalised_within_their_group(self) -> None:
        # mean 0.25, variance (3 x 0.0625 + 0.5625) / 4 = 0.1875, deviation 0.4330127
        self.assertEqual([round(one, 6) for one in group_advantages([1, 0, 0, 0])], [1.732051, -0.57735, -0.57735, -0.57735])
        # With ddof 1 the variance is 0.75 / 3 = 0.25, the deviation 0.5.
        self.assertEqual(group_advantages([1, 0, 0, 0], ddof=1), [1.5, -0.5, -0.5, -0.5])
        self.assertEqual(group_advantages([-1.0, 1.0]), [-1.0, 1.0])

    def test_a_group_whose_rewards_are_equal_has_no_advantage(self) -> None:
        for rewards in ([1, 1, 1], [0.0], [0.1] * 10, [0.1 + 0.2] * 7):
            self.assertEqual(group_advantages(rewards), [0.0] * len(rewards))
            self.assertEqual(group_advantages(rewards, ddof=1), [0.0] * len(rewards))

    def test_rounding_is_no_signal(self) -> None:
        rewards = [0.1 + 0.2, 0.3, 0.3]
        self.assertEqual(group_advantages(rewards), [0.0] * 3)
        self.assertFalse(is_informative(rewards))
        self.assertTrue(is_informative(rewards, tolerance=0))
        with self.assertRaises(ValueError):
            group_advantages([])

    def test_advantages_have_mean_zero_and_deviation_one(self) -> None:
        advantages = group_advantages([0.3, 0.9, 0.1, 0.7, 0.2])
        self.assertAlmostEqual(sum(advantages), 0.0)
        self.assertAlmostEqual(sum(one * one for one in advantages) / 5, 1.0)


class FilterTest(unittest.TestCase):
    def test_a_group_is_informative_if_two_rewards_differ_and_missing_rewards_do_not_count(self) -> None:
        self.assertTrue(is_informative([0, 1]))
        for rewards in ([], [1], [1, 1.0], [0, None], [None, None], [1, None, 1]):
            self.assertFalse(is_informative(rewards), rewards)
        self.assertEqual(keep_informative([("a", [0, 0]), ("b", [0, 1]), ("c", [1, 1])]), ["b"])


class ObjectiveTest(unittest.TestCase):
    def test_a_rising_token_is_clipped_at_the_higher_bound(self) -> None:
        logs = [math.log(ratio) for ratio in (0.5, 1.0, 1.25, 1.5)]
        # A = 2: r A up to r = 1.28, then 1.28 x 2.
        self.assert_close(clip_higher(logs, [0.0] * 4, 2.0), [1.0, 2.0, 2.5, 2.56])

    def test_a_falling_token_is_clipped_at_the_lower_bound(self) -> None:
        logs = [math.log(ratio) for ratio in (0.5, 0.9, 1.0, 1.5)]
        # A = -1: below r = 0.8 it stays at -0.8; a rising bad token is not clipped.
        self.assert_close(clip_higher(logs, [0.0] * 4, -1.0), [-0.8, -0.9, -1.0, -1.5])

    def test_equal_bounds_are_the_usual_clip(self) -> None:
        self.assert_close(clip_higher([math.log(1.5)], [0.0], 1.0, clip_high=0.2), [1.2])

    def test_on_policy_the_objective_is_the_advantage(self) -> None:
        self.assertEqual(clip_higher([-1.5, -0.1], [-1.5, -0.1], 0.7), [0.7, 0.7])

    def test_unequal_lengths_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "2 logprobs, 1 old_logprobs"):
            clip_higher([0.0, 0.0], [0.0], 1.0)

    def assert_close(self, seen: list[float], wanted: list[float]) -> None:
        self.assertEqual([round(one, 12) for one in seen], wanted)


class LossTest(unittest.TestCase):
    def test_every_trainable_token_of_the_batch_has_the_same_weight(self) -> None:
        # Five trainable tokens: (1 + 1) + (3 + 3 + 3) = 11; the mean over samples would be (1 + 3) / 2.
        loss = token_level_loss([[1, 9, 1], [3, 3, 3]], [[1, 0, 1], [1, 1, 1]])
        self.assertEqual(loss, -11 / 5)

    def test_a_batch_without_a_trainable_token_or_with_unequal_lengths_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "no token of the batch is trainable"):
            token_level_loss([[1.0]], [[0]])
        with self.assertRaisesRegex(ValueError, "1 objectives, 2 mask"):
            token_level_loss([[1.0]], [[1, 1]])
        with self.assertRaisesRegex(ValueError, "1 objectives, 0 masks"):
            token_level_loss([[1.0]], [])


class OverlongTest(unittest.TestCase):
    def test_the_penalty_grows_over_the_cache_and_is_full_beyond_it(self) -> None:
        # The paper's setting: L_max 20480, L_cache 4096.
        lengths = (0, 16384, 16385, 18432, 20480, 20481, 99999)
        penalties = [overlong_penalty(one, max_length=20480, cache=4096) for one in lengths]
        self.assertEqual(penalties, [0.0, 0.0, -1 / 4096, -0.5, -1.0, -1.0, -1.0])

    def test_a_cache_that_does_not_fit_is_refused(self) -> None:
        for cache in (0, -1, 101):
            with self.assertRaises(ValueError):
                overlong_penalty(1, max_length=100, cache=cache)


if __name__ == "__main__":
    unittest.main()
