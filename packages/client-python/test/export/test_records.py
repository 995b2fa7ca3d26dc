"""What offline files say besides tokens: the parts of the score, the conversation, the tools and the task."""

from __future__ import annotations

import dataclasses
import json
import tempfile
import unittest
from pathlib import Path

from export.test_export import make_branched, make_group
from fakes.examples import make_rollout, make_trajectory

from millrace.export import read_jsonl, to_rows, write_jsonl


class RecordsTest(unittest.TestCase):
    def test_a_record_has_the_score_the_messages_the_tools_and_the_task_of_its_group(self) -> None:
        group = make_group([(make_rollout(), make_trajectory())])
        [row] = to_rows(group)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.jsonl"
            write_jsonl(path, [row])
            [record] = read_jsonl(path)
        assert row.rollout.result is not None
        self.assertEqual(record["task"], dict(group.task))
        self.assertEqual(record["score"], dict(row.rollout.result.score))
        self.assertEqual([one["role"] for one in record["messages"]][:2], ["user", "assistant"])
        self.assertEqual(record["tools"][0]["function"]["name"], row.trajectory.tools[0].name)
        self.assertEqual(json.loads(json.dumps(record)), record)

    def test_a_row_without_a_group_or_a_result_has_no_task_and_an_empty_score(self) -> None:
        [row] = to_rows((make_rollout(result=None), make_trajectory()))
        self.assertEqual((row.task, dict(row.score)), (None, {}))

    def test_each_branch_has_its_own_conversation(self) -> None:
        rollout = make_rollout()
        branched = dataclasses.replace(make_branched(), rollout_id=rollout.id)
        rows = to_rows((rollout, branched))
        self.assertEqual([sum(len(one.head.messages) for one in row.segments) for row in rows], [len(row.messages) for row in rows])


if __name__ == "__main__":
    unittest.main()
