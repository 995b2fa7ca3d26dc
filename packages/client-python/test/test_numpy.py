"""With numpy installed, trajectories have the same numbers as arrays. Without it, only the call that needs it fails."""

from __future__ import annotations

import importlib
import importlib.util
import math
import unittest
from typing import Any

from fakes.examples import make_trajectory

from millrace import trajectory_to_binary, trajectory_to_json
from millrace.dapo import clip_higher, group_advantages, token_level_loss


class NumpyTest(unittest.TestCase):
    def test_a_trajectory_has_the_same_numbers_as_arrays_or_reports_that_numpy_is_missing(self) -> None:
        trajectory = make_trajectory()
        if importlib.util.find_spec("numpy") is None:
            with self.assertRaisesRegex(ModuleNotFoundError, "numpy"):
                trajectory.to_numpy()
            return
        arrays = trajectory.to_numpy()
        self.assertEqual([str(one.token_ids.dtype) for one in arrays.segments], ["int32"] * 5)  # type: ignore[attr-defined]
        self.assertEqual(trajectory_to_binary(arrays), trajectory_to_binary(trajectory))
        self.assertEqual(trajectory_to_json(arrays), trajectory_to_json(trajectory))

    def test_dapo_returns_arrays_for_arrays_with_the_same_numbers_as_for_lists(self) -> None:
        if importlib.util.find_spec("numpy") is None:
            self.assertIsInstance(group_advantages([0.0, 1.0]), list)
            return
        numpy: Any = importlib.import_module("numpy")
        new, old = [math.log(ratio) for ratio in (0.5, 1.1, 1.5)], [0.0] * 3
        for advantage in (2.0, -1.0):
            arrays = clip_higher(numpy.asarray(new), numpy.asarray(old), advantage)
            self.assertIsInstance(arrays, numpy.ndarray)
            numpy.testing.assert_allclose(arrays, clip_higher(new, old, advantage), rtol=1e-12)
        numpy.testing.assert_allclose(group_advantages(numpy.asarray([1.0, 0, 0, 0])), group_advantages([1, 0, 0, 0]))
        self.assertEqual(token_level_loss([numpy.asarray([1.0, 9.0])], [numpy.asarray([1, 0])]), -1.0)


if __name__ == "__main__":
    unittest.main()
