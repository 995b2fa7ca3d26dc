"""Runs tasks as sessions, as TRL's asynchronous trainer does: create, wait, read the training trace, verify, close."""

from __future__ import annotations

import json
import sys
from typing import Any

from openenv.core.harness.rollout import TrainableSession

from settings_report import choose_values, to_asked

from millrace import Client

from millrace_trainers.openenv import MillraceSessionFactory
from millrace_trainers.settings import VLLM

SETTINGS = choose_values(VLLM)


def main() -> None:
    given = json.load(sys.stdin)
    factory = MillraceSessionFactory(sampling=SETTINGS)
    sessions = {kind: run(factory, kind, [{"role": "user", "content": json.dumps(task)}]) for kind, task in given["tasks"].items()}
    settings = {"asked": to_asked(VLLM, SETTINGS), "refused": {}}
    print(json.dumps({"sessions": sessions, "settings": settings, "closed": close_early(factory, given["slow"])}))


def run(factory: MillraceSessionFactory, kind: str, prompt: Any) -> dict[str, Any]:
    session = factory.create(prompt, seed=1, episode_id=kind)
    assert isinstance(session, TrainableSession)
    code = session.wait_for_completion()
    trace = session.fetch_training_trace()
    verdict = session.verify([])
    session.close()
    return {
        "id": session.id,
        "code": code,
        "reward": verdict.env_reward,
        "failure": verdict.metrics.get("failure"),
        "roles": [[one["role"] for one in entry["request"]["messages"]] for entry in trace.to_trace_entries()],
        "masks": [[sum(one.loss_mask), len(one.loss_mask)] for one in trace.turns],
        "turns": [
            {"prompt": one.prompt_token_ids, "completion": one.completion_token_ids, "logprobs": one.per_token_logps} for one in trace.turns
        ],
    }


def close_early(factory: MillraceSessionFactory, task: Any) -> str:
    """A session that the trainer gives up: the state of its rollout afterwards."""
    session = factory.create(task)
    try:
        session.wait_for_completion(timeout_s=1.0)
    except TimeoutError:
        session.close()
    with Client() as client:
        return client.wait(session.id).state


if __name__ == "__main__":
    main()
