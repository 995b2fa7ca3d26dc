"""The `rollout_func` of TRL's GRPOTrainer. TRL passes prompts and never the task, so the task is found by its prompt. TRL takes exactly
one completion for each prompt: a rollout without a reward is a completion with a zero mask and the reward None, which TRL leaves out of
its baseline, and of a rollout with several branches the last is taken."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence

from millrace.export.trl import to_trl_columns

from ..rollouts import Job, RolloutSource
from ..train_rows import to_train_rows
from .sampling import to_sampling


class MillraceRollouts:
    """`GRPOTrainer(rollout_func=rollouts, reward_funcs=reward_from_rollout, train_dataset=Dataset.from_list(rollouts.to_rows(tasks)))`.

    `load_weights` is called with the trainer before the first rollouts of each optimiser step but the first, while nothing is sampled; it
    brings the trainer's weights to the engines. It is called in every process, because gathering sharded weights (FSDP, ZeRO-3) is a
    collective call: let only `trainer.accelerator.is_main_process` send. Afterwards tokens count as sampled by the next policy version."""

    def __init__(
        self,
        source: RolloutSource,
        *,
        dataset: Iterable[Mapping[str, Any]] = (),
        load_weights: Optional[Callable[[Any], None]] = None,
        max_completion: Optional[int] = None,
    ) -> None:
        """`dataset` has rows with `prompt` and `task`, for datasets with prompts of their own."""
        self.source = source
        self.load_weights = load_weights
        self.max_completion = max_completion
        self._tasks: dict[str, Mapping[str, Any]] = {}
        self._step: Optional[int] = None
        for row in dataset:
            self._add(row)

    def to_rows(self, tasks: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Rows for a `datasets.Dataset` whose prompt names its task. What the model reads is up to the scenario."""
        rows = [{"prompt": [{"role": "user", "content": json.dumps(task, sort_keys=True)}], "task": dict(task)} for task in tasks]
        for row in rows:
            self._add(row)
        return rows

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        self._follow_weights(trainer)
        jobs = self._to_jobs(prompts, trainer)
        tokenizer = trainer.processing_class
        filler = tokenizer.pad_token_id if getattr(tokenizer, "pad_token_id", None) is not None else tokenizer.eos_token_id
        sampled = self.source.run(jobs, trained=bool(trainer.model.training))
        return to_trl_columns([row for row in to_train_rows(sampled, filler_id=filler, max_response=self.max_completion) if row.last])

    def _add(self, row: Mapping[str, Any]) -> None:
        key, task = _key(row["prompt"]), row["task"]
        if self._tasks.setdefault(key, task) != task:
            raise ValueError(f"two tasks have the same prompt, {key[:200]}: TRL passes only prompts, so each must name its task")

    def _to_jobs(self, prompts: Sequence[Any], trainer: Any) -> list[Job]:
        """TRL repeats each prompt as many times in a row as a group has members."""
        group_size, sampling = _group_size(trainer), to_sampling(trainer.args)
        jobs: list[Job] = []
        group, count, last = -1, group_size, ""
        for prompt in prompts:
            key = _key(prompt)
            task = self._tasks.get(key)
            if task is None:
                raise ValueError(f"no task for the prompt {key[:200]}; make the dataset with to_rows(tasks), or pass it as `dataset`")
            if count == group_size or key != last:
                group, count, last = group + 1, 0, key
            count += 1
            jobs.append(Job(task, group=str(group), sampling=sampling))
        return jobs

    def _follow_weights(self, trainer: Any) -> None:
        step = trainer.state.global_step
        is_new = self._step is not None and step != self._step
        self._step = step
        if not is_new:
            return
        accelerator = trainer.accelerator
        with self.source.new_weights() if accelerator.is_main_process else nullcontext():
            accelerator.wait_for_everyone()  # Nothing is sampled from here on, in any process.
            if self.load_weights is not None:
                self.load_weights(trainer)
            accelerator.wait_for_everyone()  # The weights are there, sent by any process.
        accelerator.wait_for_everyone()


def _group_size(trainer: Any) -> int:
    size: int = trainer.num_generations if trainer.model.training else trainer.num_generations_eval
    return size


def _key(prompt: Any) -> str:
    """TRL and `datasets` may add fields without a value to messages."""
    if isinstance(prompt, str):
        return prompt
    return json.dumps([{name: value for name, value in one.items() if value is not None} for one in prompt], sort_keys=True)
