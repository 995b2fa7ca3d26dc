"""A rollout of Millrace as a trial of Harbor. The rollout has its own sandbox and its own verifier; Harbor records its tokens, logprobs and
reward. A rollout without a reward is a trial with an exception, never a zero."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Mapping, Optional, Union

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.models.agent.context import AgentContext
from harbor.models.agent.rollout_detail import RolloutDetail
from harbor.models.verifier.result import VerifierResult
from harbor.verifier.base import BaseVerifier

from millrace.export import Row, to_rows

from ..rollouts import Sampled
from ..serving import RolloutRuns, describe_failure, to_request
from ..turns import to_turns


class RolloutEnvironment(BaseEnvironment):
    """Holds the rollout of its trial, and no container: what the agent did is in the sandbox of the rollout, which is gone."""

    sampled: Optional[Sampled] = None

    @staticmethod
    def type() -> str:
        return "millrace-rollout"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True, mounted=True)

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True)

    def _validate_definition(self) -> None:
        return None

    async def start(self, force_build: bool) -> None:
        return None

    async def stop(self, delete: bool) -> None:
        return None

    async def exec(
        self,
        command: str,
        cwd: Optional[str] = None,
        env: Optional[dict[str, str]] = None,
        timeout_sec: Optional[int] = None,
        user: Union[str, int, None] = None,
    ) -> ExecResult:
        return ExecResult(stdout="", stderr="", return_code=0)

    async def upload_file(self, source_path: Union[Path, str], target_path: str) -> None:
        return None

    async def upload_dir(self, source_dir: Union[Path, str], target_dir: str) -> None:
        return None

    async def download_file(self, source_path: str, target_path: Union[Path, str]) -> None:
        raise FileNotFoundError(f"{source_path} is not there: the sandbox of a rollout is closed when it ends")

    async def download_dir(self, source_dir: str, target_dir: Union[Path, str]) -> None:
        Path(target_dir).mkdir(parents=True, exist_ok=True)


class MillraceAgent(BaseAgent):
    """`--agent millrace_trainers.harbor:MillraceAgent`. The folder of the trial is the task of the scenario `harbor`; with the
    keyword argument `request`, that rollout request is run instead. `sampling` and `limits` are those of Millrace."""

    def __init__(
        self,
        logs_dir: Path,
        *args: Any,
        request: Optional[Mapping[str, Any]] = None,
        sampling: Optional[Mapping[str, Any]] = None,
        limits: Optional[Mapping[str, Any]] = None,
        url: Optional[str] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(logs_dir, *args, **kwargs)
        self._request, self._sampling, self._limits, self._url = request, sampling, limits, url

    @staticmethod
    def name() -> str:
        return "millrace"

    def version(self) -> Optional[str]:
        try:
            return version("millrace-trainers")
        except PackageNotFoundError:
            return None  # It runs from its sources.

    async def setup(self, environment: BaseEnvironment) -> None:
        if not isinstance(environment, RolloutEnvironment):
            raise TypeError(f"MillraceAgent needs RolloutEnvironment, not {environment.type()}: the rollout has its own sandbox")

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        assert isinstance(environment, RolloutEnvironment)
        folder = {"scenario": "harbor", "task": {"folder": str(environment.environment_dir.resolve().parent)}}
        line = {**(self._request or folder), **({} if self._limits is None else {"limits": self._limits})}
        runs = RolloutRuns(self._url)
        try:
            environment.sampled = await runs.run(to_request(line, sampling=self._sampling))
        finally:
            await runs.close()
        fill_context(context, environment.sampled)


class MillraceVerifier(BaseVerifier):
    """`--verifier millrace_trainers.harbor:MillraceVerifier`: the reward is the one that Millrace's verifier measured."""

    async def verify(self) -> VerifierResult:
        sampled = self.environment.sampled if isinstance(self.environment, RolloutEnvironment) else None
        if sampled is None:
            raise RuntimeError("there is no rollout to verify: MillraceVerifier belongs to MillraceAgent and RolloutEnvironment")
        rollout = sampled.rollout
        if rollout.reward is None:
            raise RuntimeError(": ".join(describe_failure(rollout)))
        score = {} if rollout.result is None else rollout.result.score
        numbers = {name: value for name, value in score.items() if isinstance(value, (int, float)) and not isinstance(value, bool)}
        return VerifierResult(rewards={**numbers, "reward": rollout.reward})


def fill_context(context: AgentContext, sampled: Sampled) -> None:
    """One detail for each branch: the last one first, which by Harbor's convention is the main history."""
    rollout, result = sampled.rollout, sampled.rollout.result
    rows = [] if rollout.reward is None or sampled.trajectory is None else to_rows((rollout, sampled.trajectory), skip_empty=True)
    details = [to_rollout_detail(row) for row in rows]
    if details:
        context.rollout_details = details[::-1]
    if result is not None:
        context.n_input_tokens = result.tokens.prompt + result.tokens.observation
        context.n_output_tokens = result.tokens.sampled
    context.metadata = {"rollout_id": rollout.id, "reward": rollout.reward, "stop_reason": None if result is None else result.stop_reason}


def to_rollout_detail(row: Row) -> RolloutDetail:
    turns = to_turns(row)
    return RolloutDetail(
        prompt_token_ids=[turn.prompt_ids for turn in turns],
        completion_token_ids=[turn.completion_ids for turn in turns],
        logprobs=[turn.logprobs for turn in turns],
        extra={"policy_version": [None if turn.policy_versions is None else turn.policy_versions.last for turn in turns]},
    )
