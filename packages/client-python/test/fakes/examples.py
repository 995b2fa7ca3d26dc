"""The golden files, and rollouts made from them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from millrace import RolloutView, Trajectory, trajectory_from_binary
from millrace.wire.codec import from_wire

GOLDEN = Path(__file__).resolve().parents[3] / "protocol" / "test" / "golden"


def read_golden(name: str) -> Any:
    return json.loads((GOLDEN / name).read_text())


def make_rollout(**changes: Any) -> RolloutView:
    return dataclasses.replace(from_wire(RolloutView, read_golden("rollout.json")), **changes)


def make_trajectory(rollout_id: str = "r-1") -> Trajectory:
    golden = trajectory_from_binary((GOLDEN / "trajectory.mrt").read_bytes())
    return dataclasses.replace(golden, rollout_id=rollout_id)
