"""The trainer's side of docs/slurm.md: creates a batch and prints each group as one JSON line."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../packages/client-python/src"))

from millrace import Client, RolloutView  # noqa: E402


def describe(rollout: RolloutView) -> str:
    """What to look at if its reward is not 1."""
    result = rollout.result
    return f"{rollout.failure} {result and (result.stop_reason, result.turns, dict(result.score), result.timings)}"


def main(url: str, key: str, count: int, group_size: int) -> None:
    tasks = [
        {
            "instruction": f"Copy the file secret to copy. This is number {number}.",
            "setup": f"echo {number} > secret",
            "check": f"grep -qx {number} copy",
        }
        for number in range(count)
    ]
    with Client(url, key) as client:
        batch = client.batches.create(
            {"scenario": "shell", "tasks": tasks, "group_size": group_size, "target": count, "informative": {"rule": "any"}}
        )
        for group in client.batches.groups(batch.id):
            rollouts = [{"id": one.id, "reward": one.reward, "why": describe(one)} for one in group.rollouts]
            print(json.dumps({"rollouts": rollouts}), flush=True)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
