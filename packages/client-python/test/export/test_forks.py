"""The export of a fork: what it shares with the rollout that was forked is its prompt, and is trained there."""

from __future__ import annotations

import dataclasses
import unittest
from array import array

from fakes.examples import make_rollout, make_trajectory

from millrace import Segment, SegmentHead, SegmentKind
from millrace.export import to_rows


def make_segment(kind: SegmentKind, ids: list[int], turn: int) -> Segment:
    logprobs = [-0.5] * len(ids) if kind == "sampled" else []
    return Segment(SegmentHead(kind, turn, kind, ()), array("i", ids), array("f", logprobs))


class ForkTest(unittest.TestCase):
    def test_what_a_fork_shares_is_its_prompt(self) -> None:
        segments = (
            make_segment("prompt", [1, 2], 0),
            make_segment("observation", [3], 1),
            make_segment("observation", [4], 1),
            make_segment("sampled", [5, 6], 2),
        )
        row = to_rows([(make_rollout(), dataclasses.replace(make_trajectory(), segments=segments))])[0]
        self.assertEqual((row.prompt_ids, row.response_ids, row.response_mask), ([1, 2, 3, 4], [5, 6], [1, 1]))
