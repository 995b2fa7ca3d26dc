"""Every setting of a trainer arrives or is refused by name, and logprobs that do not show how tokens were sampled are not taken."""

from __future__ import annotations

import dataclasses
import unittest
import warnings
from types import SimpleNamespace
from typing import Any
from unittest import mock

from examples import make_plain

from millrace import Provenance, Trajectory

from millrace_trainers import LogprobsError, Settings, TaskError, settings
from millrace_trainers.logprobs import check_logprobs
from millrace_trainers.rollouts import read_logprobs_rule
from millrace_trainers.settings import NEMO_GYM, SKYRL, SLIME, TRL, VERL, VERL_CONFIG, VLLM, merge_sampling

TABLES = (NEMO_GYM, SKYRL, SLIME, TRL, VERL, VERL_CONFIG, VLLM)


class Scalar:
    """As a scalar of numpy."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def item(self) -> Any:
        return self.value


class SettingsTest(unittest.TestCase):
    def test_every_setting_of_every_table_arrives_or_is_refused_by_its_name(self) -> None:
        for table in TABLES:
            for name, field in table.reaching.items():
                self.assertEqual(list(table.read({name: 3})), [field], (table.trainer, name))
            for name in (*table.refused, "a_new_setting"):
                with self.assertRaisesRegex(TaskError, f"'{name}' of {table.trainer} is \\['x'\\]"):
                    table.read({name: ["x"]})

    def test_a_field_that_the_service_learns_is_passed_without_a_change_of_the_tables(self) -> None:
        with self.assertRaises(TaskError):
            Settings("T", {"halt": "halt_at"}).read({"halt": ["END"]})
        with mock.patch.object(settings, "FIELDS", settings.FIELDS | {"halt_at"}):
            self.assertEqual(Settings("T", {"halt": "halt_at"}).read({"halt": ["END"]}), {"halt_at": ["END"]})

    def test_null_is_absent_and_what_changes_nothing_is_no_error(self) -> None:
        given = {"temperature": None, "bad_words": None, "logit_processors": [], "n": 1, "ignore_eos": False}
        self.assertEqual(VLLM.read(given), {})
        self.assertEqual(SKYRL.read({"min_tokens": 1, "include_stop_str_in_output": True, "logprobs": 1, "top_k": -1}), {"top_k": 0})

    def test_false_is_not_zero_and_one_is_not_true(self) -> None:
        for given in ({"ignore_eos": True}, {"n": 2}, {"length_penalty": 0}):
            with self.assertRaises(TaskError):
                VLLM.read(given)

    def test_numbers_of_numpy_become_plain_ones(self) -> None:
        found = VLLM.read({"temperature": Scalar(0.5), "top_k": Scalar(20), "max_tokens": Scalar(7.0)})
        self.assertEqual(found, {"temperature": 0.5, "top_k": 20, "max_tokens": 7})
        self.assertEqual([type(one) for one in found.values()], [float, int, int])

    def test_a_configuration_is_read_from_attributes_or_from_a_dict(self) -> None:
        self.assertEqual(TRL.read_config(SimpleNamespace(temperature=0.5, learning_rate=1)), {"temperature": 0.5})
        self.assertEqual(VERL_CONFIG.read_config({"response_length": 7, "enable_rollout_routing_replay": False}), {"max_tokens": 7})

    def test_the_trainer_wins_and_the_shorter_turn_counts(self) -> None:
        self.assertEqual(merge_sampling({"temperature": 1, "seed": 3}, {"temperature": 0.5}), {"temperature": 0.5, "seed": 3})
        nulls: Any = {"top_k": None, "seed": None}
        self.assertEqual(merge_sampling({"max_tokens": 64}, nulls), {"max_tokens": 64})
        self.assertEqual(merge_sampling({"max_tokens": 64}, {"max_tokens": 256})["max_tokens"], 64)
        self.assertEqual(merge_sampling({"max_tokens": 512}, {"max_tokens": 256})["max_tokens"], 256)


class LogprobsTest(unittest.TestCase):
    def test_raw_logprobs_of_reshaped_sampling_are_refused(self) -> None:
        for sampling in ({"temperature": 0.5}, {"temperature": 1, "repetition_penalty": 1.1}, {"presence_penalty": 0.1}):
            with self.assertRaisesRegex(LogprobsError, "r was sampled by vllm 0.32.0 with .* raw.*processed_logprobs"):
                check_logprobs(make_trajectory("raw", sampling))

    def test_logprobs_that_show_the_sampling_are_taken(self) -> None:
        check_logprobs(make_trajectory("processed", {"temperature": 0.5}))
        check_logprobs(make_trajectory("raw", {"temperature": 1, "top_p": 0.9, "frequency_penalty": 0}))
        check_logprobs(make_trajectory("raw", {"temperature": 0.5}), "any")
        check_logprobs(None)

    def test_logprobs_of_an_unknown_mode_are_warned_about(self) -> None:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            check_logprobs(make_trajectory("unknown", {"temperature": 1}))
            check_logprobs(make_trajectory("unknown", {"temperature": 0.5}))
        self.assertEqual(len(seen), 1)
        self.assertIn("temperature 0.5, and it is unknown", str(seen[0].message))

    def test_one_wrong_engine_among_several_is_enough(self) -> None:
        good, bad = make_trajectory("processed", {"temperature": 0.5}), make_trajectory("raw", {"temperature": 0.5})
        with self.assertRaises(LogprobsError):
            check_logprobs(dataclasses.replace(good, provenances=good.provenances + bad.provenances))

    def test_the_rule_of_the_environment_is_checked(self) -> None:
        with mock.patch.dict("os.environ", MILLRACE_LOGPROBS="any"):
            self.assertEqual(read_logprobs_rule(), "any")
        with mock.patch.dict("os.environ", MILLRACE_LOGPROBS="none"), self.assertRaisesRegex(ValueError, "'none'"):
            read_logprobs_rule()


def make_trajectory(mode: str, sampling: dict[str, Any]) -> Trajectory:
    one = make_plain("r", 1.0).trajectory
    assert one is not None
    provenance = Provenance("vllm", "0.32.0", "vllm", mode, sampling, None, "0" * 64)
    return dataclasses.replace(one, provenances=(provenance,))


if __name__ == "__main__":
    unittest.main()
