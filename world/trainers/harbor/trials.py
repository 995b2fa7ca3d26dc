"""Runs trials with Harbor's own code: rollouts of Millrace, and Harbor's agents in sandboxes of a tool server."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig, VerifierConfig
from harbor.trial.trial import Trial
from settings_report import choose_values, to_asked

from millrace_trainers.settings import VLLM

SETTINGS = choose_values(VLLM)
given = json.load(sys.stdin)
examples = Path(given["examples"])
OURS = "millrace_trainers.harbor:"


async def run(name: str, task: str, **parts: Any) -> Any:
    config = TrialConfig(task=TaskConfig(path=examples / task), trial_name=name, trials_dir=Path(given["folder"]), **parts)
    return await (await Trial.create(config)).run()


async def run_rollout(kind: str, request: Any) -> dict[str, Any]:
    result = await run(
        f"rollout-{kind}",
        "greeting",
        agent=AgentConfig(import_path=f"{OURS}MillraceAgent", kwargs={"request": request, "sampling": SETTINGS}),
        environment=EnvironmentConfig(import_path=f"{OURS}RolloutEnvironment"),
        verifier=VerifierConfig(import_path=f"{OURS}MillraceVerifier"),
    )
    context = result.agent_result
    return {
        "id": context.metadata["rollout_id"],
        **to_outcome(result),
        "details": [
            [
                {"prompt": prompt, "completion": completion, "logprobs": logprobs}
                for prompt, completion, logprobs in zip(one["prompt_token_ids"], one["completion_token_ids"], one["logprobs"])
            ]
            for one in context.rollout_details or []
        ],
    }


async def run_environment(task: str, agent: str) -> dict[str, Any]:
    environment = EnvironmentConfig(import_path=f"{OURS}MillraceEnvironment")
    return to_outcome(await run(f"{task}-{agent}", task, agent=AgentConfig(name=agent), environment=environment))


def to_outcome(result: Any) -> dict[str, Any]:
    error = result.exception_info
    return {
        "rewards": None if result.verifier_result is None else result.verifier_result.rewards,
        "error": None if error is None else error.exception_message,
    }


async def main() -> None:
    rollouts = {kind: await run_rollout(kind, request) for kind, request in given["tasks"].items()}
    plays = [("greeting", "oracle"), ("greeting", "nop")]
    environments = {f"{task} {agent}": await run_environment(task, agent) for task, agent in plays}
    settings = {"asked": to_asked(VLLM, SETTINGS, within="kwargs.sampling."), "refused": {}}
    print(json.dumps({"rollouts": rollouts, "settings": settings, "environments": environments}))


asyncio.run(main())
