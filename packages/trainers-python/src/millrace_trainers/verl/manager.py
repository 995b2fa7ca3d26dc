"""The agent-loop manager for verl's trainer before v1: one row for each prompt, in order. A rollout without a reward is a row whose mask is
zero; of a rollout with several branches the last is taken, because this trainer joins rows with prompts by their place."""

from __future__ import annotations

import asyncio
from typing import Any, Optional

from millrace import Limits
from verl.experimental.agent_loop.agent_loop import AgentLoopManager
from verl.protocol import DataProto
from verl.utils.ray_utils import auto_await

from . import estimator  # noqa: F401  Registers `millrace_grpo` in the trainer's process.
from ..advantages import fill_rewards
from ..rollouts import Job, RolloutSource
from ..train_rows import to_train_rows
from .outputs import to_agent_output, to_data_proto
from .sampling import GREEDY, read_task, to_params, to_policy_version, to_sampling


class MillraceAgentLoopManager(AgentLoopManager):
    """`actor_rollout_ref.rollout.agent.agent_loop_manager_class=millrace_trainers.verl.MillraceAgentLoopManager`, with
    `algorithm.adv_estimator=millrace_grpo`, which leaves rows with a zero mask out of their group; with verl's own estimators they have the
    mean of their group, so the baseline is right and only the deviation is not. A subclass may set `scenario`, `url` and
    `limits`, which are otherwise those of the environment."""

    scenario: Optional[str] = None
    url: Optional[str] = None
    limits: Optional[Limits] = None

    async def _init_agent_loop_workers(self) -> None:
        """Millrace has workers of its own."""
        self.source = RolloutSource(self.scenario, url=self.url, limits=self.limits)
        self.agent_loop_workers: list[Any] = []

    @auto_await
    async def generate_sequences(self, prompts: DataProto) -> DataProto:
        return await asyncio.to_thread(self._generate, prompts)

    def _generate(self, prompts: DataProto) -> DataProto:
        config = self.rollout_config
        self.source.follow_version(to_policy_version(int(prompts.meta_info.get("global_steps", 0))))
        lengths = (int(config.prompt_length), int(config.response_length))
        sampled = self.source.run(self._to_jobs(prompts), trained=not _is_validation(prompts))
        rows = [row for row in to_train_rows(sampled, filler_id=self._pad_id()) if row.last]
        outputs = [to_agent_output(row, reward, lengths) for row, reward in zip(rows, fill_rewards(rows))]
        # As in verl: without reward workers, the columns of the prompts are part of the output.
        inputs = prompts.non_tensor_batch if self.reward_loop_worker_handles is None else {}
        return to_data_proto(outputs, inputs, lengths, self._pad_id())

    def _to_jobs(self, prompts: DataProto) -> list[Job]:
        columns = prompts.non_tensor_batch
        params = to_params(self.rollout_config, validate=_is_validation(prompts))
        sampled = to_sampling(params, self.rollout_config)
        greedy = to_sampling({**params, **GREEDY}, self.rollout_config)
        samples = columns["__do_sample__"] if "__do_sample__" in columns else [True] * len(prompts)
        uids = columns["uid"] if "uid" in columns else range(len(prompts))
        rows = ({name: values[index] for name, values in columns.items()} for index in range(len(prompts)))
        return [
            Job(read_task(row), group=str(uid), sampling=sampled if is_sampled else greedy)
            for row, uid, is_sampled in zip(rows, uids, samples)
        ]

    def _pad_id(self) -> int:
        tokenizer = self.model_config.get("tokenizer", None) if hasattr(self.model_config, "get") else None
        found = getattr(tokenizer, "pad_token_id", None)
        return 0 if found is None else int(found)


def _is_validation(prompts: DataProto) -> bool:
    return bool(prompts.meta_info.get("validate", False))
