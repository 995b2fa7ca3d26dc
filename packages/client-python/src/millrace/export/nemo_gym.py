"""Rows as rollout results of NeMo Gym: items of the Responses API. The last item of each turn carries the ids that the model saw,
the ids that it sampled and their logprobs. The prompt of each turn begins with the whole previous turn."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Iterable

from ..trajectories.trajectory import Message, Segment
from .rows import Row


def to_nemo_gym(rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [_to_result(row) for row in rows]


def _to_result(row: Row) -> dict[str, Any]:
    tools = [
        {"type": "function", "name": one.name, "description": one.description, "parameters": one.parameters, "strict": False}
        for one in row.trajectory.tools
    ]
    opening = [item for segment in row.prompt_segments for one in segment.head.messages for item in _to_input(one)]
    response_id = row.rollout.id if row.branch == 0 else f"{row.rollout.id}:{row.branch}"
    return {
        "responses_create_params": {"input": opening, "tools": tools},
        "response": {
            "id": response_id,
            "object": "response",
            "created_at": datetime.fromisoformat(row.rollout.created_at.replace("Z", "+00:00")).timestamp(),
            "model": row.trajectory.model,
            "output": _to_output(row, response_id),
            "tools": tools,
            "tool_choice": "auto",
            "parallel_tool_calls": True,
        },
        "reward": row.reward,
        "rollout_id": row.rollout.id,
        "group": row.rollout.group,
        "branch": row.branch,
        "stop_reason": row.stop_reason,
    }


def _to_output(row: Row, response_id: str) -> list[dict[str, Any]]:
    seen = list(row.prompt_ids)
    items: list[dict[str, Any]] = []
    for segment in row.response_segments:
        if segment.sampled:
            turn = _to_turn(segment, f"{response_id}-turn-{segment.head.turn}")
            ids = [int(one) for one in segment.token_ids]
            logprobs = [float(one) for one in segment.logprobs]
            turn[-1].update(prompt_token_ids=list(seen), generation_token_ids=ids, generation_log_probs=logprobs)
            items += turn
        else:
            items += [_to_reply(one) for one in segment.head.messages]
        seen += [int(one) for one in segment.token_ids]
    return items


def _to_turn(segment: Segment, item_id: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for message in segment.head.messages:
        if message.reasoning is not None:
            summary = [{"type": "summary_text", "text": message.reasoning}]
            items.append({"id": f"{item_id}-reasoning", "type": "reasoning", "summary": summary})
        content = [{"type": "output_text", "text": message.content, "annotations": []}]
        item = {"id": item_id, "type": "message", "role": "assistant", "status": "completed", "content": content}
        calls = message.tool_calls or ()
        if message.content != "" or not calls:
            items.append(item)
        items += [
            {"type": "function_call", "call_id": one.id, "name": one.name, "arguments": json.dumps(dict(one.arguments))}
            for one in calls
        ]
    if not items:  # A reply that could not be parsed is still a sampled turn.
        content = [{"type": "output_text", "text": segment.head.text, "annotations": []}]
        items.append({"id": item_id, "type": "message", "role": "assistant", "status": "completed", "content": content})
    return items


def _to_input(message: Message) -> list[dict[str, Any]]:
    """A message of the prompt. The Responses API has no role for tools: a call and its result are items of their own."""
    calls = message.tool_calls or ()
    said = [] if calls and message.content == "" else [_to_reply(message)]
    return said + [
        {"type": "function_call", "call_id": one.id, "name": one.name, "arguments": json.dumps(dict(one.arguments))} for one in calls
    ]


def _to_reply(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"type": "function_call_output", "call_id": message.tool_call_id or "", "output": message.content}
    return {"type": "message", "role": message.role, "content": message.content}
