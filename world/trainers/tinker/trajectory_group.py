"""Samples a group, and makes training data of it with the code of Tinker's cookbook."""

from __future__ import annotations

import json
import sys

from tinker_cookbook.rl.data_processing import assemble_training_data, compute_advantages

from millrace_trainers import Job, RolloutSource
from millrace_trainers.tinker import to_trajectory_group


def main() -> None:
    given = json.load(sys.stdin)
    source = RolloutSource(scenario="trial", limits={"max_context_tokens": 700, "max_retries": 0}, sampling={"max_tokens": 900})
    sampled = source.run([Job(task=one["task"], group="g") for one in given["tasks"].values()])
    group = to_trajectory_group(sampled)
    advantages = compute_advantages([group])
    data, places = assemble_training_data([group], advantages)
    report = {
        "ids": [one.rollout.id for one in sampled],
        "rewards": group.get_total_rewards(),
        "errors": [one.error_type for one in group.rollout_errors],
        "advantages": advantages[0].tolist(),
        "places": [one["traj_idx"] for one in places],
        "data": [
            {
                "input": one.model_input.to_ints(),
                "targets": one.loss_fn_inputs["target_tokens"].to_torch().tolist(),
                "logprobs": one.loss_fn_inputs["logprobs"].to_torch().tolist(),
                "mask": one.loss_fn_inputs["mask"].to_torch().tolist(),
                "advantages": one.loss_fn_inputs["advantages"].to_torch().tolist(),
            }
            for one in data
        ],
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
