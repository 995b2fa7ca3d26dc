"""The taskset and the environment of verifiers. A task is a rollout request; an episode is one rollout, run by Millrace with the LLM
server that the trainer names. Its trace is built from the trajectory. A rollout without a reward is a failed trace, which prime-rl
drops."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Optional

from pydantic import ConfigDict
from verifiers.v1.clients import ModelContext
from verifiers.v1.configs.agent import AgentConfig, resolve_agent
from verifiers.v1.configs.client import resolve_api_key
from verifiers.v1.configs.env import EnvConfig
from verifiers.v1.configs.harness import HarnessConfig
from verifiers.v1.configs.taskset import TasksetConfig
from verifiers.v1.env import Env
from verifiers.v1.episode import EnvInfo, Episode
from verifiers.v1.runtimes import SubprocessConfig
from verifiers.v1.task import Task, TaskData
from verifiers.v1.taskset import Taskset
from verifiers.v1.trace import AgentInfo, Error, Reward, Trace, TraceTask

from ..rollouts import Sampled
from ..serving import RolloutRuns, TaskError, TrainerBackends, describe_failure, to_request
from .graph import Graph, add_routed_experts

#: The key of the reward on a trace.
REWARD = "millrace"
_TRUNCATED = {"max_turns": "max_turns", "max_tokens": "max_output_tokens", "context_overflow": "max_total_tokens"}


class MillraceData(TaskData):
    """One line of a task file, {"scenario": …, "task": {…}}; `sampling`, `limits` and other fields of a rollout request are kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    scenario: str
    task: dict[str, Any]
    limits: Optional[dict[str, Any]] = None
    sampling: Optional[dict[str, Any]] = None


class MillraceTask(Task[MillraceData]):
    pass


class MillraceTasksetConfig(TasksetConfig):
    tasks: Optional[Path] = None
    """A file with one task per line, as `millrace submit` takes it."""


class MillraceTaskset(Taskset[MillraceTask, MillraceTasksetConfig]):
    def load(self) -> Iterator[MillraceTask]:
        path = self.config.tasks
        if path is None:
            raise TaskError("the taskset needs a file of tasks: set taskset.tasks")
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    try:
                        data = MillraceData.model_validate(json.loads(line))
                    except ValueError as error:
                        raise TaskError(f"{path}, line {number}: {error}") from error
                    yield MillraceTask(data, self.config.task)


class MillraceEnvConfig(EnvConfig):
    agent: AgentConfig = AgentConfig(harness=HarnessConfig(id="null"), runtime=SubprocessConfig())
    """The policy. Millrace runs its agent, so harness and runtime are not used."""
    url: Optional[str] = None
    """The address of the service; by default that in MILLRACE_URL."""
    join: bool = True
    """Whether the LLM server that the trainer names joins the service's pool. Without it, rollouts run on the backends that are there."""


class MillraceEnv(Env[MillraceEnvConfig]):
    """Replaces how an episode is run: there is no harness, no interception server and no runtime on this side."""

    _runs: Optional[RolloutRuns] = None
    _backends: Optional[TrainerBackends] = None

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        runs = self._runs = RolloutRuns(self.config.url)
        self._backends = TrainerBackends(runs.client)
        try:
            yield
        finally:
            self._runs = self._backends = None
            await runs.close()

    async def run(self, task: Task, agents: Any) -> None:
        raise NotImplementedError("Millrace runs the agent: run_episode does not come here")

    async def run_episode(
        self,
        task: Task,
        ctx: ModelContext,
        *,
        on_trace: Optional[Callable[[Trace], None]] = None,
        on_discard: Optional[Callable[[Trace], None]] = None,
    ) -> Episode:
        record = TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
        agent = resolve_agent(
            self.config.agent, model=ctx.model, client=ctx.client, sampling=ctx.sampling, harness=self._default_harness
        )
        trace = Trace(task=record, agent=AgentInfo(config=agent, name="agent"))
        if on_trace is not None:
            on_trace(trace)
        episode = Episode(env=EnvInfo(id=self.config.env_id), task=record)
        try:
            fill_trace(trace, await self._sample(task, agent))
        except Exception as error:  # noqa: BLE001 - What cannot be run is a failed trace, like every failure in verifiers.
            trace.errors.append(Error(type=type(error).__name__, message=str(error)))
            trace.stop_condition = "error"
        trace.is_completed = True
        trace.notify()
        episode.traces.append(trace)
        episode.ok = trace.ok
        return episode

    async def _sample(self, task: Task, agent: AgentConfig) -> Sampled:
        if self._runs is None or self._backends is None:
            raise RuntimeError("MillraceEnv runs episodes inside `async with env.serving()` only")
        sampling = {} if agent.sampling is None else agent.sampling.model_dump(exclude_none=True)
        request = to_request(task.data.model_dump(exclude={"id"}), sampling=sampling)
        if self.config.join and agent.client is not None:
            key = resolve_api_key(agent.client)
            await self._backends.join(agent.client.base_url, model=agent.model, api_key=None if key == "EMPTY" else key)
        return await self._runs.run(request)


def fill_trace(trace: Trace, sampled: Sampled) -> None:
    rollout = sampled.rollout
    result = rollout.result
    trace.info.update(rollout_id=rollout.id, state=rollout.state, attempt=rollout.attempt)
    if sampled.trajectory is not None:
        graph = Graph(sampled.trajectory)
        add_routed_experts(graph.nodes, sampled.trajectory)
        trace.tools = graph.tools
        trace.nodes.extend(graph.nodes)
        trace.calls.extend(graph.calls)
    if result is not None:
        trace.stop_condition = _TRUNCATED.get(result.stop_reason or "", result.stop_reason)
        trace.is_timeout = result.stop_reason == "rollout_timeout"
        trace.metrics.update({name: float(value) for name, value in result.score.items() if isinstance(value, (int, float))})
        if result.policy_versions is not None:
            trace.info["policy_versions"] = [result.policy_versions.first, result.policy_versions.last]
    if rollout.reward is None:
        code, message = describe_failure(rollout)
        trace.rewards[REWARD] = None
        trace.stop_condition = "error"
        trace.errors.append(Error(type=code, message=message))
    else:
        trace.rewards[REWARD] = Reward(score=rollout.reward)
        trace.ok = True
