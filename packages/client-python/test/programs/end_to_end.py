"""Makes every call against a real service, from threads and from asyncio, and prints the results as JSON for the test that started
the service to compare."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from millrace import (
    AsyncClient,
    BatchRequest,
    Client,
    EvaluationRequest,
    MillraceError,
    RolloutRequest,
    Trajectory,
    trajectory_to_binary,
)
from millrace.export import to_rows


def math(id: str, group: str) -> RolloutRequest:
    return {"id": id, "scenario": "math", "group": group, "task": {"question": "1 + 1 = ?", "answer": "2"}, "metadata": {"of": group}}


def shell(id: str, group: str) -> RolloutRequest:
    return {"id": id, "scenario": "shell", "group": group, "task": {"instruction": "two turns", "check": "true"}}


def digest(trajectory: Trajectory) -> str:
    return hashlib.sha256(trajectory_to_binary(trajectory)).hexdigest()


def use_threads(client: Client) -> dict[str, Any]:
    submissions = [math(f"t-{index}", "threads") for index in range(12)] + [shell(f"t-{index}", "threads") for index in (12, 13)]
    ids = [one["id"] for one in submissions]
    before = client.status().last_event_id
    assert [one.created for one in client.submit(submissions)] == [True] * len(ids)
    assert [one.created for one in client.submit(submissions)] == [False] * len(ids), "the same ids change nothing"
    views = {view.id: view for view in client.results(ids, after=before)}
    assert sorted(views) == sorted(ids), "each once"
    assert {view.id for view in client.results(ids)} == set(ids), "including those that finished before the call"
    with ThreadPoolExecutor(8) as pool:
        waited = list(pool.map(client.wait, ids))
        binary = list(pool.map(client.trajectory, ids))
        as_json = list(pool.map(lambda id: client.trajectory(id, form="json"), ids))
    assert waited == [views[id] for id in ids]
    assert binary == as_json, "both forms carry the same numbers"
    assert [view.id for view in client.list(group="threads")] == ids, "in the order of submission"
    for row in to_rows(zip(waited, binary)):
        tokens = row.rollout.result.tokens if row.rollout.result else None
        assert tokens is not None and sum(row.response_mask) == tokens.sampled, "the service counts the same sampled tokens"
        assert len(row.response_ids) == len(row.response_mask) == len(row.response_logprobs)
    return {view.id: {"reward": view.reward, "trajectory": digest(one)} for view, one in zip(waited, binary)}


def cancel_running(client: Client) -> str:
    before = client.status().last_event_id
    client.submit([{"id": "slow", "scenario": "shell", "task": {"instruction": "wait for long", "check": "true"}}])
    for event in client.events(after=before):
        if event.rollout_id == "slow" and event.kind == "rollout-move" and event.data["to"] == "run":
            break
    assert client.cancel("slow") == "asked"
    return client.wait("slow").state


def use_batches(client: Client) -> dict[str, Any]:
    """Four tasks of two siblings each, for three groups. The consumer stops while it handles the second, and starts again."""
    tasks = [{"question": "1 + 1 = ?", "answer": "2"}] * 4
    batch: BatchRequest = {"id": "b-1", "scenario": "math", "group_size": 2, "target": 3}
    batch.update({"informative": {"rule": "any"}, "closed": False})
    assert client.batches.create(batch) == client.batches.create(batch), "the same id changes nothing"
    assert client.batches.append_tasks("b-1", tasks, closed=True).tasks.closed
    for group in client.batches.groups("b-1", consumer="trainer"):
        if group.seq == 2:
            break
    groups = list(client.batches.groups("b-1", consumer="trainer"))
    assert [one.seq for one in groups] == [2, 3], "it continues after the last ack, each group once"
    assert [one.id for one in client.batches.groups("b-1", trajectories=False)][1:] == [one.id for one in groups]
    for group in groups:
        assert group.trajectories is not None and len(group.trajectories) == 2
        for rollout, trajectory in zip(group.rollouts, group.trajectories):
            assert trajectory == client.trajectory(rollout.id), "the page carries what the rollout's own route returns"
    assert client.batches.wait("b-1").state == "met"
    assert [one.id for one in client.batches.list(state="met")] == ["b-1"]
    return {"rewards": [list(one.rewards) for one in groups]}


def use_evaluations(client: Client) -> dict[str, Any]:
    tasks = [{"question": "1 + 1 = ?", "answer": answer} for answer in ("2", "2", "2", "3")]
    request: EvaluationRequest = {"id": "e-1", "scenario": "math", "tasks": tasks, "n": 2, "sampling": {"temperature": 0.5}}
    client.evaluations.create(request)
    view = client.evaluations.wait("e-1")
    assert client.evaluations.create(request) == view, "the same id changes nothing"
    assert [one.id for one in client.evaluations.list(state="done")] == ["e-1"]
    assert client.evaluations.retry("e-1") == view, "every sample has a reward"
    assert client.evaluations.cancel("e-1").state == "done"
    rewards = [[sample.reward for sample in one.samples] for one in client.evaluations.tasks("e-1")]
    return {"mean": view.mean.value, "pass_at": [[one.k, one.value] for one in view.pass_at], "rewards": rewards}


def swap_weights(client: Client) -> list[Any]:
    paused = client.policy.pause()
    resumed = client.policy.resume(4)
    return [paused.state, paused.generating, resumed.state, client.policy.get().policy_version]


async def use_asyncio(url: str) -> dict[str, Any]:
    async with AsyncClient(url) as client:
        ids = [f"a-{index}" for index in range(8)]
        await client.submit([math(id, "asyncio") for id in ids])
        ended = [view.id async for view in client.results(ids)]
        assert sorted(ended) == ids
        views = await asyncio.gather(*(client.wait(id) for id in ids))
        trajectories = await asyncio.gather(*(client.trajectory(id) for id in ids))
        waiting = asyncio.create_task(client.wait("t-unknown-yet"))
        try:
            await waiting
        except MillraceError as error:
            assert (error.code, error.status) == ("not-found", 404)
        return {view.id: {"reward": view.reward, "trajectory": digest(one)} for view, one in zip(views, trajectories)}


def main() -> None:
    url, backend = os.environ["MILLRACE_URL"], sys.argv[1]
    with Client(url) as client:
        joined = client.backends.join(backend, id="fake", policy_version=3)
        assert [one.id for one in client.backends.list()] == [joined.id] == ["fake"]
        rollouts = use_threads(client)
        rollouts.update(asyncio.run(use_asyncio(url)))
        batches = use_batches(client)
        evaluations = use_evaluations(client)
        policy = swap_weights(client)
        cancelled = cancel_running(client)
        drained = client.backends.drain("fake").state
        client.backends.leave("fake")
        report = {"rollouts": rollouts, "batches": batches, "evaluations": evaluations, "policy": policy}
        print(json.dumps({**report, "cancelled": cancelled, "drained": drained, "left": len(client.backends.list())}))


if __name__ == "__main__":
    main()
