"""A trajectory as the message graph of verifiers: one root for each branch, and along each path exactly the ids that the model saw, with
mask True and logprobs exactly where it sampled."""

from __future__ import annotations

import json
from typing import Any, Optional, Sequence, cast

import numpy as np
from verifiers.v1 import types as vf
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import ModelCall

from millrace import Message, Segment, Trajectory


class Graph:
    """`nodes` and `calls` of a Trace."""

    def __init__(self, trajectory: Trajectory) -> None:
        self.nodes: list[MessageNode] = []
        self.calls: list[ModelCall] = []
        self.tools = [
            vf.Tool(name=one.name, description=one.description, parameters=dict(one.parameters)) for one in trajectory.tools
        ]
        self._model = trajectory.model
        branches: dict[int, list[Segment]] = {}
        for segment in trajectory.segments:
            branches.setdefault(segment.head.branch, []).append(segment)
        for segments in branches.values():
            self._add_branch(segments)

    def _add_branch(self, segments: Sequence[Segment]) -> None:
        parent: Optional[int] = None
        turn: Optional[int] = None
        waiting: list[int] = []  # Ids that belong to no message of their own, such as the opening of the next turn.
        for index, segment in enumerate(segments):
            ids = [int(one) for one in segment.token_ids]
            if segment.sampled and parent is not None and turn == segment.head.turn:
                self._continue_turn(segment, parent, waiting, ids)
                waiting = []
            elif segment.sampled:
                parent, turn = self._add_turn(segment, parent, waiting, ids), segment.head.turn
                waiting = []
            elif segment.head.messages:
                parent = self._add_messages(segment.head.messages, parent, waiting + ids)
                waiting = []
            elif parent is not None and index == len(segments) - 1:
                self._append(parent, waiting + ids)
                waiting = []
            else:
                waiting += ids

    def _add_turn(self, segment: Segment, parent: Optional[int], before: list[int], ids: list[int]) -> int:
        seen = self._length(parent) + len(before)
        node = MessageNode(
            parent=parent,
            message=_to_reply(segment),
            sampled=True,
            token_ids=before + ids,
            mask=[False] * len(before) + [True] * len(ids),
            logprobs=[float(one) for one in segment.logprobs],
            tools=self.tools if parent is None else [],
            sampling_mask=None if segment.sampling_mask is None else vf.SamplingMask.from_sampling_mask(segment.sampling_mask.rows()),
        )
        self.nodes.append(node)
        self.calls.append(
            ModelCall(
                node=len(self.nodes) - 1,
                model=self._model,
                finish_reason=_finish_of(segment),
                usage=vf.Usage(prompt_tokens=seen, completion_tokens=len(ids)),
            )
        )
        return len(self.nodes) - 1

    def _continue_turn(self, segment: Segment, index: int, before: list[int], ids: list[int]) -> None:
        """A pause cut the turn, and it went on under other weights."""
        self._append(index, before)
        node, call = self.nodes[index], self.calls[-1]
        node.token_ids += ids
        node.mask += [True] * len(ids)
        node.logprobs += [float(one) for one in segment.logprobs]
        node.message = _to_reply(segment)
        call.finish_reason = _finish_of(segment)
        assert call.usage is not None
        call.usage.completion_tokens += len(ids)

    def _add_messages(self, messages: Sequence[Message], parent: Optional[int], ids: list[int]) -> int:
        """The ids are those of all messages together; the last node carries them."""
        for index, message in enumerate(messages):
            own = ids if index == len(messages) - 1 else []
            tools = self.tools if parent is None else []
            node = MessageNode(parent=parent, message=_to_message(message), token_ids=own, mask=[False] * len(own), tools=tools)
            self.nodes.append(node)
            parent = len(self.nodes) - 1
        assert parent is not None
        return parent

    def _append(self, index: int, ids: list[int]) -> None:
        node = self.nodes[index]
        node.token_ids += ids
        node.mask += [False] * len(ids)

    def _length(self, index: Optional[int]) -> int:
        total = 0
        while index is not None:
            total += len(self.nodes[index].token_ids)
            index = self.nodes[index].parent
        return total


def add_routed_experts(nodes: Sequence[MessageNode], trajectory: Trajectory) -> None:
    """Sets the experts of every token, if they are known for every token but the last of each branch, as the engines report them. The
    trainer replays a branch from complete rows only, so incomplete ones are left out."""
    paths: dict[int, list[Segment]] = {}
    for segment in trajectory.segments:
        paths.setdefault(segment.head.branch, []).append(segment)
    roots = [index for index, node in enumerate(nodes) if node.parent is None] + [len(nodes)]
    for segments, start, end in zip(paths.values(), roots, roots[1:]):
        rows = _expert_rows(segments)
        if rows is None:
            continue
        at = 0
        for node in nodes[start:end]:
            node.routed_experts = rows[at : at + len(node.token_ids)]
            at += len(node.token_ids)


def _expert_rows(segments: Sequence[Segment]) -> Optional["np.ndarray[Any, Any]"]:
    total = sum(len(one.token_ids) for one in segments)
    found: Optional[np.ndarray[Any, Any]] = None
    known = np.zeros(total, dtype=bool)
    for segment in segments:
        experts = segment.routed_experts
        if experts is None or len(experts.shape) != 2:
            continue
        rows = np.frombuffer(experts.ids, dtype="uint8" if experts.ids.typecode == "B" else "uint16").reshape(-1, *experts.shape)
        if found is None:
            found = np.zeros((total, *experts.shape), dtype=rows.dtype)
        end = min(total, experts.first + len(rows))
        found[experts.first : end] = rows[: end - experts.first]
        known[experts.first : end] = True
    return found if found is not None and known[:-1].all() else None


def _finish_of(segment: Segment) -> vf.FinishReason:
    if segment.head.finish_reason == "length":
        return "length"
    return "tool_calls" if any(one.tool_calls for one in segment.head.messages) else "stop"


def _to_reply(segment: Segment) -> vf.AssistantMessage:
    messages = segment.head.messages
    if not messages:  # A reply that could not be parsed is still a sampled turn.
        return vf.AssistantMessage(content=segment.head.text)
    reply = _to_message(messages[-1])
    return reply if isinstance(reply, vf.AssistantMessage) else vf.AssistantMessage(content=segment.head.text)


def _to_message(message: Message) -> Any:
    if message.role == "assistant":
        calls = [vf.ToolCall(id=one.id, name=one.name, arguments=json.dumps(dict(one.arguments))) for one in message.tool_calls or ()]
        return vf.AssistantMessage(content=message.content, reasoning_content=message.reasoning, tool_calls=calls or None)
    if message.role == "tool":
        return vf.ToolMessage(tool_call_id=message.tool_call_id or "", content=message.content, name=message.name)
    kind = vf.SystemMessage if message.role in ("system", "developer") else vf.UserMessage
    return cast(Any, kind)(content=message.content)
