"""An agent loop of verl that runs one rollout in Millrace. Every branch is an output; verl's v1 trainers compute a rollout's advantage once
and give it to all of its outputs. A rollout without a reward has no output, and its group has one member less."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Mapping, Optional
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, register

from ..rollouts import Job, RolloutSource
from ..train_rows import to_train_rows
from .outputs import to_agent_output
from .sampling import read_task, to_policy_version, to_sampling

#: As many rollouts of one agent-loop worker may wait for Millrace at the same time; each waits in a thread.
_THREADS = 1024


@register("millrace")
class MillraceAgentLoop(AgentLoopBase):
    """In the file of `rollout.agent.agent_loop_config_path`: `- {name: millrace, _target_: millrace_trainers.verl.MillraceAgentLoop}`, with
    `scenario`, `url` and `limits` if they are not in the environment; and `rollout.agent.default_agent_loop=millrace`."""

    def __init__(
        self,
        *args: Any,
        scenario: Optional[str] = None,
        url: Optional[str] = None,
        limits: Optional[Mapping[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._source, self._pool = _open_source(url)
        self._scenario = scenario
        self._limits: Any = None if limits is None else dict(limits)

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> Any:
        group = f"verl-{kwargs.get('uid') or uuid4()}"
        job = Job(
            task=read_task(kwargs),
            group=group,
            id=f"{group}-{kwargs.get('session_id', uuid4())}",
            scenario=self._scenario,
            sampling=to_sampling(sampling_params, self.rollout_config),
            limits=self._limits,
        )
        if "global_steps" in kwargs:
            step = int(kwargs["global_steps"])
            await self._call(lambda: self._source.follow_version(to_policy_version(step)))
        sampled = await self._call(lambda: self._source.run([job]))
        lengths = (self.rollout_config.prompt_length, self.rollout_config.response_length)
        rows = to_train_rows(sampled)
        return [to_agent_output(row, row.reward, lengths) for row in rows if row.reward is not None and not row.placeholder]

    async def _call(self, act: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, act)


@lru_cache(maxsize=None)
def _open_source(url: Optional[str]) -> tuple[RolloutSource, ThreadPoolExecutor]:
    """One for each process and service: verl makes an agent loop for every rollout."""
    return RolloutSource(url=url), ThreadPoolExecutor(_THREADS, thread_name_prefix="millrace-verl")
