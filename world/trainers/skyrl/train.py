"""SkyRL's own trainer code on what the generator returns: validation, reward post-processing, tensors, advantages. In both of its modes."""

from __future__ import annotations

import asyncio
import json
import sys
import typing
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import typing_extensions

# On Python 3.11, pydantic refuses the standard library's TypedDict, which SkyRL 0.3.0 uses.
typing.TypedDict = typing_extensions.TypedDict  # type: ignore[assignment]

from ledger_rows import read_ledger  # noqa: E402
from skyrl.train.config import SkyRLTrainConfig  # noqa: E402
from skyrl.train.generators.base import BatchMetadata, GeneratorInput, TrajectoryID  # noqa: E402
from skyrl.train.trainer import RayPPOTrainer  # noqa: E402
from tiny_model import open_tokenizer  # noqa: E402

from millrace_trainers import RolloutSource  # noqa: E402
from millrace_trainers.skyrl import MillraceGenerator  # noqa: E402

given = json.load(sys.stdin)
tokenizer = open_tokenizer(given["tokenizer"])
source = RolloutSource(limits={"max_retries": 0})
size = 4


class Trainer(RayPPOTrainer):
    """SkyRL's trainer without its cluster: no models, one data-parallel rank."""

    def __init__(self, cfg: Any, generator: Any) -> None:
        self.cfg, self.generator, self.tokenizer = cfg, generator, tokenizer
        self.all_metrics: dict[str, Any] = {}
        self.dispatch = SimpleNamespace(get_lcm_dp_size=lambda: 1)


def step(number: int, *, step_wise: bool, merge: bool = False) -> dict[str, Any]:
    cfg = SkyRLTrainConfig()
    cfg.generator.step_wise_trajectories = step_wise
    cfg.generator.merge_stepwise_output = merge
    cfg.generator.n_samples_per_prompt = size
    cfg.trainer.train_batch_size = cfg.trainer.policy_mini_batch_size = len(given["tasks"])
    cfg.trainer.algorithm.advantage_estimator = "grpo"
    cfg.trainer.critic.model.path = None
    trainer = Trainer(cfg, MillraceGenerator(source, step_wise=step_wise, filler_id=tokenizer.pad_token_id))
    tasks = [task for task in given["tasks"] for _ in range(size)]
    ids = [TrajectoryID(f"prompt-{index // size}", index % size) for index in range(len(tasks))]
    batch: GeneratorInput = {
        "prompts": [[{"role": "user", "content": task["question"]}] for task in tasks],
        "env_classes": ["millrace"] * len(tasks),
        "env_extras": [{"task": task} for task in tasks],
        "sampling_params": {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "max_generate_length": 64},
        "trajectory_ids": ids,
        "batch_metadata": BatchMetadata(global_step=number, training_phase="train"),
    }
    output = asyncio.run(trainer.generate(batch))
    masks = [list(one) for one in output["loss_masks"]]
    uids = [one.instance_id for one in (output["trajectory_ids"] if step_wise else ids)]
    output, uids = trainer.postprocess_generator_output(output, uids)
    training = trainer.convert_to_training_input(output, uids)
    training["values"] = None
    training = trainer.compute_advantages_and_returns(training)
    width = training["response_mask"].shape[1]
    rows = []
    for index, identity in enumerate(output["trajectory_ids"]):
        trained = training["loss_mask"][index].bool()
        rows.append(
            {
                "group": identity.instance_id,
                "member": identity.repetition_id,
                "ids": training["sequences"][index][training["attention_mask"][index].bool()].tolist(),
                "sampled": training["sequences"][index][-width:][trained].tolist(),
                "logprobs": training["rollout_logprobs"][index][trained].tolist(),
                "advantages": sorted(set(training["advantages"][index][trained].tolist())),
                "trained": sum(masks[index]) if not merge else None,
            }
        )
    return {"rows": rows, "metrics": {name: value for name, value in trainer.all_metrics.items() if isinstance(value, (int, float))}}


report = {
    "versions": {"skyrl": version("skyrl")},
    "plain": step(1, step_wise=False),
    "step_wise": step(2, step_wise=True),
    "merged": step(2, step_wise=True, merge=True),
}
ids = [f"{source.name}-{call}-{group}-{member}" for call in (1, 2) for group in range(len(given["tasks"])) for member in range(size)]
report["ledger"] = read_ledger(source.client, ids)
print(json.dumps(report))
