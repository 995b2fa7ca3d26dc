"""Numbers for trackers count every rollout once, and a curriculum prefers tasks whose rewards differ."""

from __future__ import annotations

import dataclasses
import sys
import unittest
from types import SimpleNamespace
from typing import Any
from unittest import mock

from examples import make_plain

from millrace import PolicySpan, RolloutResult, Timings, TokenCounts

from millrace_trainers import Sampled
from millrace_trainers.feedback import Curriculum, Tracker, to_metrics


class MetricsTest(unittest.TestCase):
    def test_a_rollout_without_a_reward_is_counted_and_is_in_no_mean(self) -> None:
        found = to_metrics([make_scored("a", 1.0, 3), make_scored("b", 0.0, 5), make_plain("c", None), make_scored("d", None, 9)])
        self.assertEqual((found["rollout/count"], found["rollout/unscored"], found["rollout/reward/mean"]), (4.0, 0.5, 0.5))
        self.assertEqual((found["rollout/score/length"], found["rollout/turns/mean"]), (4.0, 2.0))
        self.assertEqual((found["rollout/stop/completed"], found["rollout/seconds/run"]), (0.75, 2.0))
        self.assertEqual((found["rollout/policy_version/min"], found["rollout/policy_version/max"]), (2.0, 4.0))
        self.assertEqual(to_metrics([]), {"rollout/count": 0.0, "rollout/unscored": 0.0})

    def test_trackers_get_the_same_numbers(self) -> None:
        seen: list[Any] = []
        wandb = SimpleNamespace(log=lambda metrics, step: seen.append(("wandb", metrics, step)))
        mlflow = SimpleNamespace(log_metrics=lambda metrics, step: seen.append(("mlflow", metrics, step)))
        board = SimpleNamespace(add_scalar=lambda *one: seen.append(one), flush=lambda: None)
        modules = {"wandb": wandb, "mlflow": mlflow, "tensorboardX": SimpleNamespace(SummaryWriter=lambda folder: board)}
        with mock.patch.dict(sys.modules, modules), mock.patch("millrace_trainers.feedback.metrics.find_spec", lambda _: None):
            Tracker("wandb", "mlflow", "tensorboard").log({"score/part (a)": 4.0}, 7)
        name, refused = "score/part (a)", "score/part _a_"
        self.assertEqual(seen, [("wandb", {name: 4.0}, 7), ("mlflow", {refused: 4.0}, 7), (name, 4.0, 7)])

    def test_a_tracker_that_is_not_installed_or_not_known_is_named(self) -> None:
        with mock.patch.dict(sys.modules, {"wandb": None}), self.assertRaisesRegex(ImportError, "needs wandb: pip install wandb"):
            Tracker("wandb")
        with self.assertRaisesRegex(ValueError, "'excel'"):
            Tracker("excel")  # type: ignore[arg-type]


class CurriculumTest(unittest.TestCase):
    def test_new_tasks_come_first_and_then_those_with_a_signal(self) -> None:
        tasks = [{"n": number} for number in range(30)]
        curriculum = Curriculum(tasks, seed=3)
        self.assertEqual(len({str(one) for one in curriculum.choose(30)}), 30)
        for number, task in enumerate(tasks):
            curriculum.add(task, [1.0, 0.0] if number < 10 else [1.0, 1.0] if number < 20 else [0.0, None])
        picked = [task["n"] for _ in range(200) for task in curriculum.choose(5)]
        self.assertGreater(sum(1 for one in picked if one < 10), 0.8 * len(picked))
        self.assertTrue(any(one >= 10 for one in picked), "a task without a signal comes back now and then")
        self.assertEqual([curriculum.weight(tasks[at]) for at in (0, 10, 20)], [1.0, 0.05, 0.05])

    def test_estimates_follow_the_policy_and_survive_a_checkpoint(self) -> None:
        task = {"n": 1}
        curriculum = Curriculum([task], memory=0.5)
        curriculum.add(task, [0.0, 0.0])
        curriculum.add(task, [1.0, 1.0])
        self.assertEqual(curriculum.weight(task), 1.0)
        other = Curriculum([task])
        other.restore({**curriculum.state(), "gone": 0.5})
        self.assertEqual(other.state(), curriculum.state())

    def test_what_it_cannot_use_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "reward 1 of the group is nan"):
            Curriculum([{"n": 1}]).add({"n": 1}, [0.0, float("nan")])
        with self.assertRaisesRegex(ValueError, "not a task of this curriculum"):
            Curriculum([{"n": 1}]).add({"n": 2}, [1.0])
        for options in ({"memory": 1.0}, {"floor": 0.0}, {"low": 1.0}):
            with self.assertRaises(ValueError):
                Curriculum([{"n": 1}], **options)
        with self.assertRaisesRegex(ValueError, "at least one task"):
            Curriculum([])


def make_scored(id: str, reward: Any, length: int) -> Sampled:
    one = make_plain(id, reward)
    timings = Timings(*([0.0] * 3), 2000.0, *([0.0] * 4))
    tokens, versions = TokenCounts(4, 6, 2), PolicySpan(2, 4)
    result = RolloutResult(reward, {"length": length, "note": "x"}, "completed", 2, tokens, 0, versions, ("b",), timings)
    return Sampled(dataclasses.replace(one.rollout, result=result), one.trajectory)


if __name__ == "__main__":
    unittest.main()
