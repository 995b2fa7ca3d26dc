"""A trajectory in the Agent Trajectory Interchange Format: steps with messages, tool calls and their results, and the ids and
logprobs of each reply. It is a record, not training data, so the reward may be null."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from ..rollouts.rollout import RolloutView
from ..trajectories.trajectory import Message, Segment, Trajectory
from ..version import __version__
from ..wire.codec import to_wire
from .rows import tool_to_openai

SCHEMA_VERSION = "ATIF-v1.6"


def to_atif(rollout: RolloutView, trajectory: Trajectory, *, branch: int = 0) -> dict[str, Any]:
    segments = [one for one in trajectory.segments if one.head.branch == branch]
    if not segments:
        raise ValueError(f"rollout {rollout.id} has no branch {branch}")
    steps = _to_steps(segments)
    for index, step in enumerate(steps, 1):
        step["step_id"] = index
    sampled = sum(len(one.token_ids) for one in segments if one.sampled)
    agent: dict[str, Any] = {"name": "millrace", "version": __version__, "model_name": trajectory.model}
    if trajectory.tools:
        agent["tool_definitions"] = [tool_to_openai(one) for one in trajectory.tools]
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": rollout.id if branch == 0 else f"{rollout.id}:{branch}",
        "agent": agent,
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": sum(step["metrics"]["prompt_tokens"] for step in steps if "metrics" in step),
            "total_completion_tokens": sampled,
            "total_steps": len(steps),
        },
        "extra": {
            "scenario": rollout.scenario,
            "group": rollout.group,
            "state": rollout.state,
            "reward": rollout.reward,
            "stop_reason": None if rollout.result is None else rollout.result.stop_reason,
            "provenances": [to_wire(one) for one in trajectory.provenances],
        },
    }


def _to_steps(segments: Sequence[Segment]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    reply: Optional[dict[str, Any]] = None
    seen: list[int] = []
    for segment in segments:
        if segment.sampled:
            reply = _to_reply(segment, seen)
            steps.append(reply)
        for message in () if segment.sampled else segment.head.messages:
            if message.role == "tool" and reply is not None:
                reply.setdefault("observation", {"results": []})["results"].append(_to_result(message, reply))
            else:
                source = {"system": "system", "assistant": "agent"}.get(message.role, "user")
                steps.append({"source": source, "message": message.content})
        seen += [int(one) for one in segment.token_ids]
    return steps


def _to_reply(segment: Segment, seen: Sequence[int]) -> dict[str, Any]:
    messages = segment.head.messages
    calls = [call for one in messages for call in one.tool_calls or ()]
    step: dict[str, Any] = {
        "source": "agent",
        "message": "".join(one.content for one in messages) if messages else segment.head.text,
        "metrics": {
            "prompt_tokens": len(seen),
            "completion_tokens": len(segment.token_ids),
            "prompt_token_ids": list(seen),
            "completion_token_ids": [int(one) for one in segment.token_ids],
            "logprobs": [float(one) for one in segment.logprobs],
        },
    }
    reasoning = "\n".join(one.reasoning for one in messages if one.reasoning is not None)
    if reasoning:
        step["reasoning_content"] = reasoning
    if calls:
        step["tool_calls"] = [
            {"tool_call_id": one.id, "function_name": one.name, "arguments": dict(one.arguments)} for one in calls
        ]
    return step


def _to_result(message: Message, reply: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {"content": message.content}
    # The format does not allow a result of a call that its step does not contain.
    if message.tool_call_id in {one["tool_call_id"] for one in reply.get("tool_calls", ())}:
        result["source_call_id"] = message.tool_call_id
    return result
