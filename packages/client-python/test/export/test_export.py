"""Every export: lengths match, only sampled tokens are trainable, and a missing reward never becomes a zero."""

from __future__ import annotations

import dataclasses
import json
import struct
import tempfile
import unittest
from array import array
from pathlib import Path
from typing import Any

from fakes.examples import make_rollout, make_trajectory, read_golden

from millrace import (
    GroupView,
    Message,
    RolloutView,
    SamplingMask,
    Segment,
    SegmentHead,
    SegmentKind,
    ToolCall,
    Trajectory,
    WireError,
)
from millrace.batches.batch import group_page_from_json
from millrace.export import (
    Row,
    read_jsonl,
    reward_from_rollout,
    to_atif,
    to_nemo_gym,
    to_rows,
    to_skyrl,
    to_slime,
    to_trl,
    to_verl,
    write_jsonl,
)

PROMPT = [151644, 872, 198]
RESPONSE = [1, 2147483647, 151645, 18, 0]
MASK = [1, 1, 0, 0, 0]
FIRST = struct.unpack("f", struct.pack("f", -0.1))[0]
LOGPROBS = [FIRST, -1.5, 0.0, 0.0, 0.0]


def make_rows() -> list[Row]:
    """Two siblings of one group."""
    return to_rows((make_rollout(id=id, reward=reward), make_trajectory(id)) for id, reward in (("r-1", 0.5), ("r-2", 1.0)))


def make_group(pairs: list[tuple[RolloutView, Trajectory]]) -> GroupView:
    rollouts, trajectories = tuple(one for one, _ in pairs), tuple(one for _, one in pairs)
    golden = group_page_from_json(read_golden("group-page.json")).groups[0]
    return dataclasses.replace(golden, id="g-1", rollouts=rollouts, trajectories=trajectories)


def make_segment(kind: SegmentKind, ids: list[int], *, turn: int = 0, branch: int = 0) -> Segment:
    logprobs = [-0.5] * len(ids) if kind == "sampled" else []
    return Segment(SegmentHead(kind, turn, kind, (), branch=branch), array("i", ids), array("f", logprobs))


def make_branched() -> Trajectory:
    segments = (
        make_segment("prompt", [1, 2]),
        make_segment("sampled", [3], turn=1),
        make_segment("observation", [4, 5], turn=1),
        make_segment("sampled", [6, 7], turn=2),
        make_segment("prompt", [1, 9], turn=2, branch=1),
        make_segment("sampled", [8], turn=3, branch=1),
    )
    return dataclasses.replace(make_trajectory(), segments=segments)


class RowsTest(unittest.TestCase):
    def test_the_prompt_ends_before_the_first_reply_and_only_sampled_tokens_are_trainable(self) -> None:
        row = make_rows()[0]
        self.assertEqual((row.prompt_ids, row.response_ids), (PROMPT, RESPONSE))
        self.assertEqual((row.response_mask, row.response_logprobs), (MASK, LOGPROBS))
        self.assertEqual((row.reward, row.branch, row.last), (0.5, 0, True))

    def test_a_rollout_without_a_reward_is_refused_or_skipped_and_never_a_zero(self) -> None:
        pair = (make_rollout(reward=None, state="failed"), make_trajectory())
        with self.assertRaisesRegex(ValueError, r"rollout r-1 has no reward \(failed\); skip_unscored=True"):
            to_rows([pair])
        self.assertEqual(to_rows([pair], skip_unscored=True), [])
        self.assertEqual(to_rows([(make_rollout(reward=0.0), make_trajectory())])[0].reward, 0.0)

    def test_a_rewritten_history_is_a_separate_row(self) -> None:
        rows = to_rows([(make_rollout(), make_branched())])
        self.assertEqual([(row.branch, row.last, row.prompt_ids, row.response_ids, row.response_mask) for row in rows], [
            (0, False, [1, 2], [3, 4, 5, 6, 7], [1, 0, 0, 1, 1]),
            (1, True, [1, 9], [8], [1]),
        ])
        self.assertEqual([row.reward for row in rows], [0.5, 0.5])

    def test_a_branch_in_which_nothing_was_sampled_is_refused_or_skipped(self) -> None:
        for segments in ((), (make_segment("prompt", [1]),), (make_segment("prompt", [1]), make_segment("sampled", [], turn=1))):
            pair = (make_rollout(), dataclasses.replace(make_trajectory(), segments=segments))
            with self.assertRaisesRegex(ValueError, "nothing was sampled; skip_empty=True"):
                to_rows([pair])
            self.assertEqual(to_rows([pair], skip_empty=True), [])

    def test_a_trajectory_of_another_rollout_or_with_a_missing_logprob_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "rollout r-1 is paired with the trajectory of r-9"):
            to_rows([(make_rollout(), make_trajectory("r-9"))])
        short = dataclasses.replace(make_segment("sampled", [1, 2]), logprobs=array("f", [-0.5]))
        with self.assertRaisesRegex(WireError, "2 ids of kind sampled with 1 logprobs"):
            to_rows([(make_rollout(), dataclasses.replace(make_trajectory(), segments=(short,)))])


class RowSourcesTest(unittest.TestCase):
    def test_a_rollout_a_group_and_any_iterable_of_either_give_the_same_rows(self) -> None:
        pairs = [(make_rollout(id=id, reward=reward), make_trajectory(id)) for id, reward in (("r-1", 0.5), ("r-2", 1.0))]
        group = make_group(pairs)
        rows = to_rows(pairs)
        self.assertEqual(len(rows), 2)
        sources: list[Any] = [group, [group], iter([group]), tuple(pairs), iter(pairs), [pairs[0], make_group(pairs[1:])]]
        for source in sources:
            self.assertEqual([dataclasses.replace(one, task=None) for one in to_rows(source)], rows)
        self.assertEqual(to_rows(pairs[0]), rows[:1])
        self.assertEqual(to_rows([group, group]), to_rows(group) * 2)
        self.assertEqual(to_rows([]), [])

    def test_a_group_that_was_read_without_trajectories_says_so(self) -> None:
        group = dataclasses.replace(make_group([(make_rollout(), make_trajectory())]), trajectories=None)
        with self.assertRaisesRegex(ValueError, "group g-1 has no trajectories; read it with groups.*trajectories=True"):
            to_rows(group)

    def test_a_rollout_without_its_trajectory_or_anything_else_is_refused_with_a_hint(self) -> None:
        wrong: list[Any] = [make_rollout(), [make_rollout()], make_trajectory(), "r-1", ["r-1"], None, 5, [(make_rollout(),)], {"a": 1}]
        for source in wrong:
            with self.assertRaisesRegex(TypeError, r"to_rows expects \(rollout, trajectory\) pairs or groups, not "):
                to_rows(source)
        with self.assertRaisesRegex(TypeError, r"client.trajectory\('r-1'\)"):
            to_rows(make_rollout())  # type: ignore[arg-type]


class ExportTest(unittest.TestCase):
    def test_verl(self) -> None:
        output = to_verl(make_rows())
        self.assertEqual(len(output), 2)
        for one, reward in zip(output, (0.5, 1.0)):
            self.assertEqual((one["prompt_ids"], one["response_ids"]), (PROMPT, RESPONSE))
            self.assertEqual((one["response_mask"], one["response_logprobs"]), (MASK, LOGPROBS))
            self.assertEqual(one["reward_score"], reward)
        fields = output[0]["extra_fields"]
        self.assertEqual((fields["min_global_steps"], fields["max_global_steps"], fields["group"]), (3, 4, "g-1"))
        self.assertEqual(output[0]["num_turns"], 4)
        self.assertEqual([fields["reward_extra_info"][name] for name in ("score", "acc")], [0.5, 0.5])

    def test_verl_gets_no_version_that_is_unknown_and_no_response_that_is_too_long(self) -> None:
        trajectory = make_trajectory()
        heads = [dataclasses.replace(one.head, policy_versions=None) for one in trajectory.segments]
        segments = tuple(dataclasses.replace(one, head=head) for one, head in zip(trajectory.segments, heads))
        rows = to_rows((make_rollout(), dataclasses.replace(trajectory, segments=segments)))
        [output] = to_verl(rows, response_length=2)
        self.assertNotIn("min_global_steps", output["extra_fields"])
        self.assertEqual((output["response_ids"], output["response_mask"]), (RESPONSE[:2], MASK[:2]))
        self.assertEqual(output["response_logprobs"], LOGPROBS[:2])

    def test_the_provenance_is_exported_where_a_trainer_has_a_place_for_it(self) -> None:
        rows = make_rows()
        verl, slime = to_verl(rows)[0]["extra_fields"]["provenances"], to_slime(rows)[0]["metadata"]["provenances"]
        atif = to_atif(make_rollout(), make_trajectory())["extra"]["provenances"]
        self.assertEqual((verl, slime, atif), (rows[0].provenances,) * 3)
        only = verl[0]
        self.assertEqual((only["engine"], only["engine_version"], only["logprobs_mode"]), ("vllm", "0.32.0", "processed"))
        self.assertEqual((only["sampling"]["temperature"], only["sampling"]["seed"]), (0.5, 7))
        self.assertEqual(only["tokenizer_sha256"], "a" * 64)
        self.assertEqual(json.loads(json.dumps(verl)), verl)

    def test_skyrl(self) -> None:
        output = to_skyrl(make_rows())
        self.assertEqual(output["prompt_token_ids"], [PROMPT, PROMPT])
        self.assertEqual(output["response_ids"], [RESPONSE, RESPONSE])
        self.assertEqual(output["loss_masks"], [MASK, MASK])
        self.assertEqual(output["rollout_logprobs"], [LOGPROBS, LOGPROBS])
        self.assertEqual((output["rewards"], output["stop_reasons"]), ([0.5, 1.0], ["stop", "stop"]))
        self.assertEqual([one.to_string() for one in output["trajectory_ids"]], ["g-1_0", "g-1_1"])
        self.assertEqual(output["is_last_step"], [True, True])
        lengths = {len(value) for value in output.values() if isinstance(value, list)}
        self.assertEqual(lengths, {2})

    def test_skyrl_marks_the_last_row_of_a_rollout_with_branches(self) -> None:
        output = to_skyrl(to_rows([(make_rollout(), make_branched())]))
        self.assertEqual(output["is_last_step"], [False, True])
        self.assertEqual([one.repetition_id for one in output["trajectory_ids"]], [0, 0])

    def test_slime(self) -> None:
        samples = to_slime(make_rows())
        for index, sample in enumerate(samples):
            self.assertEqual((sample["group_index"], sample["index"]), (0, index))
            self.assertEqual(sample["tokens"], PROMPT + RESPONSE)
            self.assertEqual(sample["tokens"][-sample["response_length"] :], RESPONSE)
            self.assertEqual((sample["loss_mask"], sample["rollout_log_probs"]), (MASK, LOGPROBS))
        self.assertEqual(samples[0]["weight_versions"], ["3", "4"])
        self.assertEqual((samples[0]["status"], samples[0]["reward"]), ("completed", 0.5))
        self.assertEqual(samples[0]["prompt"], [{"role": "user", "content": "count the files"}])
        self.assertNotIn("rollout_top_p_token_ids", samples[0])
        self.assertEqual([one["rollout_id"] for one in samples], [0, 1])
        branched = to_slime(to_rows([(make_rollout(), make_branched()), (make_rollout(id="r-2"), make_trajectory("r-2"))]))
        self.assertEqual([one["rollout_id"] for one in branched], [0, 0, 1])

    def test_slime_gets_the_sampling_masks_with_an_empty_span_for_every_token_that_was_not_sampled(self) -> None:
        trajectory = make_trajectory()
        mask = SamplingMask(array("i", [2, 1]), array("i", [1, 7, 2147483647]))
        segments = [one if index != 1 else dataclasses.replace(one, sampling_mask=mask) for index, one in enumerate(trajectory.segments)]
        masked = dataclasses.replace(trajectory, segments=tuple(segments))
        [row] = to_rows([(make_rollout(), masked)])
        self.assertEqual(row.sampling_mask, [[1, 7], [2147483647], [], [], []])
        [sample] = to_slime([row])
        self.assertEqual(sample["rollout_top_p_token_ids"], [1, 7, 2147483647])
        self.assertEqual(sample["rollout_top_p_token_offsets"], [0, 2, 3, 3, 3, 3])

    def test_trl(self) -> None:
        output = to_trl(make_rows())
        self.assertEqual((output["prompt_ids"], output["completion_ids"]), ([PROMPT] * 2, [RESPONSE] * 2))
        self.assertEqual((output["env_mask"], output["logprobs"]), ([MASK] * 2, [LOGPROBS] * 2))
        self.assertEqual(reward_from_rollout(["a", "b"], **{"reward": output["reward"], "rollout_id": output["rollout_id"]}), [0.5, 1.0])
        self.assertEqual(reward_from_rollout(["a", "b"], reward=[None, 1]), [None, 1.0])
        with self.assertRaisesRegex(ValueError, "1 rewards for 2 completions"):
            reward_from_rollout(["a", "b"], reward=[1.0])
        with self.assertRaisesRegex(ValueError, "several branches"):
            to_trl(to_rows([(make_rollout(), make_branched())]))

    def test_nemo_gym(self) -> None:
        result = to_nemo_gym(make_rows())[0]
        items = result["response"]["output"]
        self.assertEqual([one["type"] for one in items], ["reasoning", "message", "function_call", "function_call_output", "message"])
        self.assertEqual(items.pop(0)["summary"], [{"type": "summary_text", "text": "I do not know yet."}])
        self.assertEqual(result["reward"], 0.5)
        turns = [one for one in items if "generation_token_ids" in one]
        self.assertEqual([one["type"] for one in turns], ["function_call", "message"])
        self.assertEqual(turns[0]["prompt_token_ids"], PROMPT)
        self.assertEqual((turns[0]["generation_token_ids"], turns[0]["generation_log_probs"]), ([1, 2147483647], [FIRST, -1.5]))
        self.assertEqual((items[2]["call_id"], items[2]["output"]), (items[1]["call_id"], "3"))
        self.assertEqual(json.loads(items[1]["arguments"]), {"command": 'ls "ä" ☃'})

    def test_nemo_gym_has_what_its_validators_require(self) -> None:
        """A creation time, and no role or field that the Responses API lacks: calls and results in the prompt are items."""
        opening = (
            Message("user", "Look."),
            Message("assistant", "", tool_calls=(ToolCall("c1", "look", {"at": "it"}),)),
            Message("tool", "3", tool_call_id="c1"),
        )
        head = SegmentHead("prompt", 0, "", opening)
        segments = (Segment(head, array("i", [1, 2]), array("f")), make_segment("sampled", [3], turn=1))
        trajectory = dataclasses.replace(make_trajectory(), segments=segments)
        (result,) = to_nemo_gym(to_rows((make_rollout(), trajectory)))
        given = result["responses_create_params"]["input"]
        self.assertEqual([one["type"] for one in given], ["message", "function_call", "function_call_output"])
        self.assertEqual((given[1]["arguments"], given[2]["call_id"]), ('{"at": "it"}', "c1"))
        self.assertAlmostEqual(result["response"]["created_at"], 1767323045.678, places=3)

    def test_nemo_gym_begins_each_prompt_with_the_whole_previous_turn(self) -> None:
        for result in to_nemo_gym(to_rows([(make_rollout(), make_branched())])):
            before: list[int] = []
            for item in result["response"]["output"]:
                if "prompt_token_ids" in item:
                    self.assertEqual(item["prompt_token_ids"][: len(before)], before)
                    self.assertEqual(len(item["generation_token_ids"]), len(item["generation_log_probs"]))
                    before = item["prompt_token_ids"] + item["generation_token_ids"]

    def test_atif(self) -> None:
        document = to_atif(make_rollout(reward=None), make_trajectory())
        steps = document["steps"]
        self.assertEqual([one["step_id"] for one in steps], [1, 2, 3])
        self.assertEqual([one["source"] for one in steps], ["user", "agent", "agent"])
        self.assertIsNone(document["extra"]["reward"])
        metrics: Any = steps[1]["metrics"]
        self.assertEqual((metrics["prompt_token_ids"], metrics["completion_token_ids"]), (PROMPT, [1, 2147483647]))
        self.assertEqual(len(metrics["completion_token_ids"]), len(metrics["logprobs"]))
        self.assertEqual(steps[1]["observation"]["results"], [{"content": "3", "source_call_id": "call-1"}])
        self.assertEqual(steps[1]["tool_calls"][0]["function_name"], "bash")
        self.assertEqual(steps[1]["reasoning_content"], "I do not know yet.")
        self.assertNotIn("metrics", steps[0])
        self.assertEqual(document["final_metrics"]["total_completion_tokens"], 2)
        with self.assertRaisesRegex(ValueError, "has no branch 1"):
            to_atif(make_rollout(), make_trajectory(), branch=1)

    def test_json_lines_are_read_as_they_were_written(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.jsonl"
            self.assertEqual(write_jsonl(path, make_rows()), 2)
            records = list(read_jsonl(path))
            self.assertEqual([one["reward"] for one in records], [0.5, 1.0])
            self.assertEqual((records[0]["prompt_ids"], records[0]["response_ids"]), (PROMPT, RESPONSE))
            self.assertEqual((records[0]["response_mask"], records[0]["response_logprobs"]), (MASK, LOGPROBS))
            path.write_text('{"a": 1}\n{"a"')
            with self.assertRaisesRegex(ValueError, "line 2"):
                list(read_jsonl(path))


if __name__ == "__main__":
    unittest.main()
