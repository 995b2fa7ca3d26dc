"""SkyRL's own trainer code on what the generator returns: validation, reward post-processing, tensors, advantages, in both of its modes;
and optimiser steps of its policy worker."""

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

import local_policy  # noqa: E402
from ledger_rows import read_experts, read_ledger  # noqa: E402
from settings_report import choose_values, find_refusals, to_asked  # noqa: E402
from skyrl.backends.skyrl_train.inference_servers.engine_utils import get_sampling_params_for_backend  # noqa: E402
from skyrl.train.config import SkyRLTrainConfig  # noqa: E402
from skyrl.train.generators.base import BatchMetadata, GeneratorInput, TrajectoryID  # noqa: E402
from skyrl.train.trainer import RayPPOTrainer  # noqa: E402
from tiny_model import count_changed, open_model, open_tokenizer, take_weights  # noqa: E402

from millrace_trainers import RolloutSource  # noqa: E402
from millrace_trainers.settings import SKYRL  # noqa: E402
from millrace_trainers.skyrl import MillraceGenerator, to_sampling  # noqa: E402

given = json.load(sys.stdin)
tokenizer = open_tokenizer(given["tokenizer"])
source = RolloutSource(limits={"max_retries": 0}, sampling={"routed_experts": True})
#: SkyRL does not merge steps that have experts.
plain_source = RolloutSource(limits={"max_retries": 0})
size = 4


class Trainer(RayPPOTrainer):
    """SkyRL's trainer without its cluster: no models, one data-parallel rank."""

    def __init__(self, cfg: Any, generator: Any) -> None:
        self.cfg, self.generator, self.tokenizer = cfg, generator, tokenizer
        self.all_metrics: dict[str, Any] = {}
        self.all_timings: dict[str, float] = {}
        self.dispatch = SimpleNamespace(get_lcm_dp_size=lambda: 1)
        self.global_step, self.critic_model = 1, None


policy: Any = None
#: Those of its configuration; what it sends besides to vLLM are `additional_kwargs`.
penalties = ("presence_penalty", "frequency_penalty", "repetition_penalty")
settings = choose_values(SKYRL, without=(*penalties, "max_tokens", "seed", "stop_token_ids", "logit_bias"))
extra = {name: value for name, value in choose_values(SKYRL).items() if name not in settings and name != "max_tokens"}


def optimise(trainer: Trainer, training: Any) -> dict[str, Any]:
    """One training step of SkyRL's trainer, on the weights that the step before left."""
    global policy
    if policy is None:
        policy = local_policy.LocalDispatch(trainer.cfg, open_model(tokenizer), learning_rate=1e-2)
    trainer.dispatch = policy
    training["action_log_probs"] = policy.log_probs(training)
    model = policy.worker.model
    before, tokens = take_weights(model), int(training["loss_mask"].sum())
    status = trainer.train_critic_and_policy(training)
    return {"loss": status["policy_loss"], "norm": status["grad_norm"], "tokens": tokens, "changed": count_changed(model, before)}


def step(number: int, *, step_wise: bool, merge: bool = False) -> dict[str, Any]:
    cfg = SkyRLTrainConfig()
    cfg.generator.step_wise_trajectories = step_wise
    cfg.generator.merge_stepwise_output = merge
    cfg.generator.n_samples_per_prompt = size
    cfg.trainer.train_batch_size = cfg.trainer.policy_mini_batch_size = len(given["tasks"])
    cfg.trainer.algorithm.advantage_estimator = "grpo"
    cfg.trainer.critic.model.path = None
    cfg.trainer.algorithm.use_kl_loss = False
    for name, value in settings.items():
        setattr(cfg.generator.sampling_params, name, value)
    cfg.generator.sampling_params.additional_kwargs = extra
    trainer = Trainer(cfg, MillraceGenerator(plain_source if merge else source, step_wise=step_wise, filler_id=tokenizer.pad_token_id))
    tasks = [task for task in given["tasks"] for _ in range(size)]
    ids = [TrajectoryID(f"prompt-{index // size}", index % size) for index in range(len(tasks))]
    batch: GeneratorInput = {
        "prompts": [[{"role": "user", "content": task["question"]}] for task in tasks],
        "env_classes": ["millrace"] * len(tasks),
        "env_extras": [{"task": task} for task in tasks],
        "sampling_params": get_sampling_params_for_backend("vllm", cfg.generator.sampling_params),
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
    experts = training.get("rollout_expert_indices")
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
                "experts": [] if merge else experts[index][training["attention_mask"][index].bool()].flatten(1).tolist(),
                "trained": sum(masks[index]) if not merge else None,
            }
        )
    seen = None if merge else optimise(trainer, training)
    metrics = {name: value for name, value in trainer.all_metrics.items() if isinstance(value, (int, float))}
    return {"rows": rows, "optimised": seen, "metrics": metrics}


report = {
    "versions": {"skyrl": version("skyrl")},
    "settings": {
        "asked": {**to_asked(SKYRL, settings), **to_asked(SKYRL, extra, within="additional_kwargs.")},
        "refused": find_refusals(SKYRL, to_sampling),
    },
    "plain": step(1, step_wise=False),
    "step_wise": step(2, step_wise=True),
    "merged": step(2, step_wise=True, merge=True),
}
ids = [f"{source.name}-{call}-{group}-{member}" for call in (1, 2) for group in range(len(given["tasks"])) for member in range(size)]
report["ledger"] = read_ledger(source.client, ids)
report["experts"] = {one: read_experts(source.client, one, 0) for one in ids}
print(json.dumps(report))
