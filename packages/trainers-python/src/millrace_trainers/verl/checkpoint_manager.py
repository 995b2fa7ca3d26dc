"""verl's own weight sync, with Millrace's sampling paused around it. Its engines join Millrace as backends."""

from __future__ import annotations

import asyncio
from typing import Any

from verl.checkpoint_engine import CheckpointEngineManager
from verl.utils.ray_utils import auto_await

from ..rollouts import RolloutSource


class MillraceCheckpointEngineManager(CheckpointEngineManager):
    """`actor_rollout_ref.rollout.checkpoint_manager_class=millrace_trainers.verl.MillraceCheckpointEngineManager`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.source = RolloutSource()
        for replica in self.replicas:
            self.source.client.backends.join(f"http://{replica._server_address}")

    @auto_await
    async def update_weights(self, global_steps: Any = None) -> Any:
        """Turns in progress are cut, and go on under the new weights; every token keeps the version that sampled it."""
        source = self.source
        paused = await asyncio.to_thread(source.pause, "abort")
        version = paused.policy_version + 1 if global_steps is None else int(global_steps)
        try:
            metrics = await super().update_weights(global_steps)
        except BaseException:
            await asyncio.to_thread(source.resume, paused.policy_version)
            raise
        await asyncio.to_thread(lambda: source.resume(version, allow_lower=version < paused.policy_version))
        return metrics
