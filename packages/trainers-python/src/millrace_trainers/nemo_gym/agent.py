"""An agent server of NeMo Gym whose `/run` is one rollout of Millrace. Ids, logprobs and reward are those of the trajectory. NeMo RL has no
field for a rollout without a reward, so such a rollout is sampled again, and after the last try `/run` fails: it is never a zero."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from fastapi import Body, HTTPException
from nemo_gym.base_resources_server import BaseRunRequest, BaseVerifyResponse
from nemo_gym.base_responses_api_agent import BaseResponsesAPIAgentConfig, SimpleResponsesAPIAgent
from nemo_gym.openai_utils import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from pydantic import ConfigDict, PrivateAttr

from millrace import MillraceError
from millrace.export import to_nemo_gym, to_rows

from ..rollouts import Sampled
from ..serving import RolloutRuns, TaskError, describe_failure, to_request
from ..settings import NEMO_GYM


class MillraceRunRequest(BaseRunRequest):
    """A line of the data set: `responses_create_params`, and the task as `scenario` and `task` of a rollout request."""

    model_config = ConfigDict(extra="allow")

    scenario: str
    task: dict[str, Any]


class MillraceVerifyResponse(BaseVerifyResponse):
    model_config = ConfigDict(extra="allow")


class MillraceAgentConfig(BaseResponsesAPIAgentConfig):
    entrypoint: str = ""
    url: Optional[str] = None
    """The address of the service; by default that in MILLRACE_URL."""
    tries: int = 3
    """How many times a rollout without a reward is sampled before `/run` fails."""


class MillraceAgent(SimpleResponsesAPIAgent):
    config: MillraceAgentConfig
    _runs: RolloutRuns = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        self._runs = RolloutRuns(self.config.url)

    async def close(self) -> None:
        await self._runs.close()

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming = Body()) -> NeMoGymResponse:
        raise HTTPException(400, "Millrace runs whole rollouts: call /run with scenario and task")

    async def run(self, body: MillraceRunRequest = Body()) -> MillraceVerifyResponse:
        given = body.model_dump(exclude_none=True)
        parameters = given["responses_create_params"]
        try:
            request = to_request({**given, "id": None}, sampling=parameters, settings=NEMO_GYM)
            for _ in range(max(1, self.config.tries)):
                sampled = await self._runs.run(request)
                if sampled.rollout.reward is not None:
                    return MillraceVerifyResponse.model_validate(to_result(sampled, given))
        except TaskError as error:
            raise HTTPException(400, str(error)) from error
        except MillraceError as error:
            raise HTTPException(error.status or 502, f"{error.code}: {error.message}") from error
        code, message = describe_failure(sampled.rollout)
        raise HTTPException(502, f"{code}: {message}; sampled {self.config.tries} times")


def to_result(sampled: Sampled, given: Mapping[str, Any]) -> dict[str, Any]:
    """NeMo RL takes one sequence per rollout. Of a rollout with branches this is the last one; `branches` says how many there are."""
    assert sampled.trajectory is not None
    rows = to_rows((sampled.rollout, sampled.trajectory), skip_empty=True)
    result = to_nemo_gym(rows[-1:])[0]
    opening = result.pop("responses_create_params")
    kept = {name: value for name, value in given.items() if name not in ("scenario", "task", "responses_create_params")}
    parameters = {**given["responses_create_params"], **opening}
    return {**kept, **result, "responses_create_params": parameters, "branches": len(rows)}
