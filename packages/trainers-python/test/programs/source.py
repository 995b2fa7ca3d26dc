"""Uses a RolloutSource as adapters do, against a real service: settings, nulls, logprobs, weights, copies. Prints what it saw."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import threading
from typing import Any

from millrace import Client, MillraceError

from millrace_trainers import Job, LogprobsError, RolloutSource

TASK = {"question": "What is 1 + 1?", "answer": "2", "hint": None, "solution": None}


def main() -> None:
    limits: Any = {"max_retries": 0, "max_turns": None}
    source = RolloutSource("math", sampling={"max_tokens": 64}, limits=limits)
    report: dict[str, Any] = {"refused": refuse_raw(source)}
    report["evaluated"] = len(source.run([Job(TASK, group="e", sampling={"temperature": 0.5})], trained=False))
    report["any"] = len(RolloutSource("math", logprobs="any").run([Job(TASK, group="a", sampling={"temperature": 0.5})]))
    report["rewards"] = [one.rollout.reward for one in source.run([Job(TASK, group="n"), Job({**TASK, "hint": None}, group="n")])]
    report["copies"] = copy_names(source)
    report["weights"] = change_weights(source)
    print(json.dumps(report))


def refuse_raw(source: RolloutSource) -> str:
    try:
        source.run([Job(TASK, group="r", sampling={"temperature": 0.5}) for _ in range(2)])
    except LogprobsError as error:
        return str(error)
    return "taken"


def copy_names(source: RolloutSource) -> dict[str, Any]:
    """Names of a copy and of a fork, both of which submit rollouts of their own."""
    copy = pickle.loads(pickle.dumps(source))
    seen = [one.rollout.id for one in copy.run([Job(TASK, group="c")])]
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put([one.rollout.id for one in source.run([Job(TASK, group="f")])]))
    child.start()
    seen += queue.get()
    child.join()
    seen += [one.rollout.id for one in source.run([Job(TASK, group="o")])]
    return {"ids": seen, "owners": len({source.owner, copy.owner})}


def change_weights(source: RolloutSource) -> dict[str, Any]:
    """Another process follows a version, and another trainer resumes, while this one loads weights."""
    other, stranger = pickle.loads(pickle.dumps(source)), Client()
    follower = threading.Thread(target=other.follow_version, args=(1,))
    found: dict[str, Any] = {}
    with source.new_weights(adapter="step-1"):
        follower.start()
        try:
            stranger.policy.resume(9)
        except MillraceError as error:
            found["stranger"] = [error.code, source.owner in error.message]
        follower.join(1.5)
        policy = source.client.policy.get()
        found["during"] = [follower.is_alive(), policy.state, policy.policy_version, policy.owner == source.owner]
    follower.join()
    policy = source.client.policy.get()
    found["after"] = [policy.state, policy.policy_version, policy.adapter, policy.owner]
    try:
        with source.new_weights():
            raise KeyError("the weights did not load")
    except KeyError:
        policy = source.client.policy.get()
        found["failed"] = [policy.state, policy.policy_version]
    return found


if __name__ == "__main__":
    assert os.environ.get("MILLRACE_URL")
    main()
