"""What the adapters share that serve one rollout at a time: requests made from a trainer's own words, and events for a gateway."""

from __future__ import annotations

import unittest

from examples import make_branched

from millrace_trainers.agent_lightning.controller import to_events
from millrace_trainers.serving import TaskError, describe_failure, to_request, to_sampling


class SamplingTest(unittest.TestCase):
    def test_names_of_openai_and_vllm_are_translated(self) -> None:
        given = {"max_completion_tokens": 64, "temperature": 0.5, "extra_body": {"top_k": -1, "min_p": 0.1, "cache_salt": "7"}}
        self.assertEqual(to_sampling(given), {"max_tokens": 64, "temperature": 0.5, "top_k": 0, "min_p": 0.1})

    def test_what_changes_nothing_is_dropped(self) -> None:
        self.assertEqual(to_sampling({"n": 1, "stop": None, "logprobs": True, "seed": None}), {})

    def test_what_millrace_cannot_do_is_refused_by_name(self) -> None:
        for field in ({"n": 4}, {"guided_grammar": "root ::= x"}, {"extra_body": {"best_of": 2}}):
            with self.assertRaisesRegex(TaskError, "'(n|guided_grammar|extra_body.best_of)' of the trainer is"):
                to_sampling(field)


class RequestTest(unittest.TestCase):
    def test_a_line_of_a_task_file_keeps_its_limits_and_the_trainer_wins_over_its_sampling(self) -> None:
        line = {"scenario": "math", "task": {"question": "1"}, "limits": {"max_turns": 2}, "sampling": {"seed": 1, "temperature": 1.0}}
        request = to_request(line, sampling={"temperature": 0.2})
        self.assertEqual(request["limits"], {"max_turns": 2})
        self.assertEqual(request["sampling"], {"seed": 1, "temperature": 0.2})

    def test_null_is_absent_in_every_part_of_a_line(self) -> None:
        parts = {"id": None, "group": None, "metadata": None, "priority": None, "limits": {"max_turns": None, "max_retries": 0}}
        line = {"scenario": "math", "task": {"question": "1", "hint": None}, "sampling": {"seed": None, "top_k": 3}, **parts}
        request = to_request(line, sampling={"temperature": None})
        expected = {"scenario": "math", "task": line["task"], "limits": {"max_retries": 0}, "sampling": {"top_k": 3}}
        self.assertEqual(request, expected)

    def test_a_bare_task_needs_a_scenario(self) -> None:
        self.assertEqual(to_request({"question": "1"}, scenario="math"), {"scenario": "math", "task": {"question": "1"}})
        with self.assertRaisesRegex(TaskError, "fields scenario and task, found question"):
            to_request({"question": "1"})


class EventsTest(unittest.TestCase):
    def test_every_turn_is_a_model_request_with_its_ids_and_logprobs(self) -> None:
        sampled = make_branched("r-1", 0.5)
        assert sampled.trajectory is not None
        *calls, reward = to_events(sampled)
        turns = [one for one in sampled.trajectory.segments if one.sampled]
        self.assertEqual(len(calls), len(turns))
        for call, segment in zip(calls, turns):
            (choice,) = call["data"]["response"]["choices"]
            self.assertEqual(choice["token_ids"], list(segment.token_ids))
            self.assertEqual([one["logprob"] for one in choice["logprobs"]["content"]], list(segment.logprobs))
        self.assertEqual(reward["data"]["value"], sampled.rollout.reward)

    def test_a_failure_is_described_with_its_code(self) -> None:
        code, message = describe_failure(make_branched("r-1", None).rollout)
        self.assertTrue(code)
        self.assertIn("no reward", message)


if __name__ == "__main__":
    unittest.main()
