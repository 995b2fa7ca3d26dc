"""The reward rule of a gateway or a harness: what each branch is worth."""

from __future__ import annotations

import dataclasses
import unittest

from export.test_export import make_branched
from fakes.examples import make_rollout

from millrace.export import to_rows


class WeightsTest(unittest.TestCase):
    def test_branches_have_the_weights_of_their_reward_rule_and_one_without_a_reward_has_no_row(self) -> None:
        for key in ("gateway", "harness"):
            rollout = make_rollout()
            assert rollout.result is not None
            for weights, kept in (([0.0, 1.0], [(1, 1.0, True)]), ([0.25, 0.75], [(0, 0.25, False), (1, 0.75, True)])):
                branches = [{"branch": index, "weight": weight} for index, weight in enumerate(weights)]
                result = dataclasses.replace(rollout.result, score={key: {"branches": branches}})
                rows = to_rows([(dataclasses.replace(rollout, result=result), make_branched())])
                self.assertEqual([(row.branch, row.weight, row.last) for row in rows], kept)


if __name__ == "__main__":
    unittest.main()
