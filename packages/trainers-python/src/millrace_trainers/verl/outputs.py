"""Rows as verl takes them: AgentLoopOutput for its agent loops, and a padded DataProto for a whole batch."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

import numpy
import torch
from tensordict import TensorDict
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput
from verl.protocol import DataProto
from verl.utils.model import compute_position_id_with_mask

from ..replay import to_routed_experts
from ..train_rows import TrainRow


def to_agent_output(row: TrainRow, reward: float, lengths: tuple[int, int]) -> AgentLoopOutput:
    """A prompt that is longer than verl allows goes on in the response, with mask 0, so that every token is seen. A longer response is
    cut."""
    prompt_length, response_length = lengths
    rest = row.prompt_ids[prompt_length:]
    result = row.rollout.result
    versions = row.policy_versions
    extra: dict[str, Any] = {
        "rollout_id": row.rollout.id,
        "branch": row.branch,
        "stop_reason": None if result is None else result.stop_reason,
        "reward_extra_info": to_reward_info(row, reward),
    }
    if versions is not None:
        extra.update(min_global_steps=versions.first, max_global_steps=versions.last)
    experts = to_routed_experts(row)
    return AgentLoopOutput(
        prompt_ids=row.prompt_ids[:prompt_length],
        response_ids=(rest + row.response_ids)[:response_length],
        response_mask=([0] * len(rest) + row.response_mask)[:response_length],
        response_logprobs=([0.0] * len(rest) + row.response_logprobs)[:response_length],
        routed_experts=None if experts is None else numpy.array(experts[: prompt_length + response_length], dtype=numpy.int16),
        reward_score=reward,
        # verl counts the messages of both sides: the user's first one, then replies and tool results in turn.
        num_turns=0 if row.row is None else 1 + sum(1 for one in row.row.response_segments if one.kind in ("sampled", "observation")),
        metrics=_to_metrics(row),
        extra_fields=extra,
    )


def to_reward_info(row: TrainRow, reward: float) -> dict[str, Any]:
    """For verl's metrics and the filter of DAPO (`filter_groups.metric`): `score` and `acc`, and what numbers the verifier reported."""
    score = {} if row.rollout.result is None else row.rollout.result.score
    numbers = {name: float(value) for name, value in score.items() if isinstance(value, (int, float))}
    return {**numbers, "score": reward, "acc": reward}


def to_data_proto(outputs: Sequence[AgentLoopOutput], inputs: Mapping[str, Any], lengths: tuple[int, int], pad_id: int) -> DataProto:
    """Prompts are padded on the left, responses on the right; the score is on the last token of the response."""
    prompt_length, response_length = lengths
    prompts = _stack([_left(one.prompt_ids, prompt_length, pad_id) for one in outputs])
    responses = _stack([_right(one.response_ids, response_length, pad_id) for one in outputs])
    prompt_mask = _stack([_left([1] * len(one.prompt_ids), prompt_length, 0) for one in outputs])
    answer_mask = _stack([_right([1] * len(one.response_ids), response_length, 0) for one in outputs])
    attention = torch.cat([prompt_mask, answer_mask], dim=1)
    logprobs = [one.response_logprobs or [0.0] * len(one.response_ids) for one in outputs]
    scores = torch.zeros(len(outputs), response_length)
    for index, one in enumerate(outputs):
        scores[index, len(one.response_ids) - 1] = 0.0 if one.reward_score is None else one.reward_score
    batch = {
        "prompts": prompts,
        "responses": responses,
        "response_mask": _stack([_right(one.response_mask, response_length, 0) for one in outputs]),
        "input_ids": torch.cat([prompts, responses], dim=1),
        "attention_mask": attention,
        "position_ids": compute_position_id_with_mask(attention),
        "rollout_log_probs": torch.tensor([_right(one, response_length, 0.0) for one in logprobs], dtype=torch.float32),
        "rm_scores": scores,
    }
    experts = _stack_experts(outputs, lengths)
    if experts is not None:
        batch["routed_experts"] = experts
    infos = [one.extra_fields["reward_extra_info"] for one in outputs]
    # A verifier may report more about one rollout than about another; verl needs every key in every row.
    keys = sorted({key for info in infos for key in info})
    columns = {"__num_turns__": numpy.array([one.num_turns for one in outputs], dtype=numpy.int32), **dict(inputs)}
    columns.update({key: numpy.array([info.get(key, 0.0) for info in infos]) for key in keys})
    for key in ("rollout_id", "branch", "stop_reason", "min_global_steps", "max_global_steps", "turn_scores", "tool_rewards"):
        columns[key] = _objects([one.extra_fields.get(key) for one in outputs])
    return DataProto(
        batch=TensorDict(batch, batch_size=len(outputs)),
        non_tensor_batch=columns,
        meta_info={"timing": _to_timing(outputs), "reward_extra_keys": keys},
    )


def _to_metrics(row: TrainRow) -> AgentLoopMetrics:
    timings = None if row.rollout.result is None else row.rollout.result.timings
    if timings is None:
        return AgentLoopMetrics()
    return AgentLoopMetrics(
        generate_sequences=timings.model_ms / 1000, tool_calls=timings.tool_ms / 1000, compute_score=timings.evaluate_ms / 1000
    )


def _to_timing(outputs: Sequence[AgentLoopOutput]) -> dict[str, float]:
    timing: dict[str, float] = {}
    for name in ("generate_sequences", "tool_calls", "compute_score"):
        values = numpy.array([getattr(one.metrics, name) for one in outputs])
        timing.update({f"agent_loop/{name}/{key}": float(getattr(values, key)()) for key in ("min", "max", "mean")})
    return timing


def _stack_experts(outputs: Sequence[AgentLoopOutput], lengths: tuple[int, int]) -> Optional[Any]:
    """By the place of each token in prompt and response, as verl replays them; zero where there is no token or nothing was recorded."""
    found = [one.routed_experts for one in outputs]
    shape = next((one.shape[1:] for one in found if one is not None), None)
    if shape is None:
        return None
    experts = torch.zeros(len(outputs), sum(lengths), *shape, dtype=torch.int16)
    for index, (output, rows) in enumerate(zip(outputs, found)):
        if rows is not None:
            start = lengths[0] - len(output.prompt_ids)
            kept = torch.from_numpy(rows)[: len(output.prompt_ids) + len(output.response_ids)]
            experts[index, start : start + len(kept)] = kept
    return experts


def _stack(rows: Sequence[Sequence[int]]) -> Any:
    return torch.tensor(rows, dtype=torch.int64)


def _left(ids: Sequence[int], length: int, fill: int) -> list[int]:
    return [fill] * (length - len(ids)) + list(ids)


def _right(values: Sequence[Any], length: int, fill: Any) -> list[Any]:
    return list(values) + [fill] * (length - len(values))


def _objects(values: Sequence[Optional[Any]]) -> Any:
    array = numpy.empty(len(values), dtype=object)
    array[:] = values
    return array
