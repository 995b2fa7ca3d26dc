"""What slime does with the samples of a rollout function, as far as its documentation says: siblings of a rollout share its id, lengths
agree, removed samples have a zero mask, rewards are normalised over all samples unless a hook does it."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

from slime.utils.types import Sample


class RolloutManager:
    """The part that turns samples into training data."""

    args: Any
    data_source: Any
    generate_rollout: Any
    custom_reward_post_process_func: Any

    def _get_rollout_data(self, rollout_id: int) -> Any:
        output = self.generate_rollout(self.args, rollout_id, self.data_source, evaluation=False)
        flat: list[Sample] = []
        for group in output.samples:
            for rollout in group:
                assert len({one.rollout_id for one in rollout}) == 1 and rollout[0].rollout_id is not None
                flat += rollout
        return flat, output.metrics

    def _convert_samples_to_train_data(self, samples: list[Sample]) -> dict[str, Any]:
        rewards = self._normalise(samples)
        for one in samples:
            assert len(one.loss_mask) == one.response_length == len(one.rollout_log_probs)
            if one.remove_sample:
                one.loss_mask = [0] * one.response_length
        sums: dict[int, int] = {}
        for one in samples:
            sums[one.rollout_id] = sums.get(one.rollout_id, 0) + sum(one.loss_mask)
        return {
            "tokens": [one.tokens for one in samples],
            "response_lengths": [one.response_length for one in samples],
            "rewards": rewards,
            "rollout_ids": [one.rollout_id for one in samples],
            "loss_masks": [one.loss_mask for one in samples],
            "rollout_mask_sums": [sums[one.rollout_id] for one in samples],
            "rollout_log_probs": [one.rollout_log_probs for one in samples],
        }

    def _normalise(self, samples: list[Sample]) -> list[float]:
        if self.custom_reward_post_process_func is not None:
            rewards: list[float] = self.custom_reward_post_process_func(self.args, samples)[1]
            return rewards
        raw = [float(one.reward) for one in samples]
        return [(one - fmean(raw)) / (stdev(raw) + 1e-6) for one in raw]
