"""Runs single rollouts for a trainer that awaits each of them. A caller that is cancelled cancels its rollout."""

from __future__ import annotations

import asyncio
import uuid
from typing import Optional

from millrace import AsyncClient, MillraceError, RolloutRequest, RolloutView, Trajectory

from ..logprobs import LogprobsError, check_logprobs
from ..rollouts import Sampled, read_logprobs_rule
from ..settings import TaskError

#: A waiting rollout holds one thread of the client, which costs little.
MOST_AT_ONCE = 1024


class RolloutRuns:
    """The address and key of the service are by default those in MILLRACE_URL and MILLRACE_KEY."""

    def __init__(self, url: Optional[str] = None, api_key: Optional[str] = None) -> None:
        self.client = AsyncClient(url, api_key, threads=MOST_AT_ONCE)
        self._logprobs = read_logprobs_rule()

    async def run(self, request: RolloutRequest) -> Sampled:
        """Returns when it has ended, with or without a reward."""
        id = request.get("id") or f"t-{uuid.uuid4().hex}"
        named: RolloutRequest = {**request, "id": id}
        submitted = asyncio.ensure_future(self.client.submit(named))
        try:
            await asyncio.shield(submitted)
            view = await self.client.wait(id)
            trajectory = await self._read(view)
            check_logprobs(trajectory, self._logprobs)
            return Sampled(view, trajectory)
        except LogprobsError as error:
            raise TaskError(str(error)) from error
        except asyncio.CancelledError:
            # A cancel that overtakes its submission finds nothing, and the rollout would run for no one.
            await asyncio.wait([submitted])
            if submitted.exception() is None:
                await self._cancel(id)
            raise

    async def close(self) -> None:
        await self.client.close()

    async def _read(self, view: RolloutView) -> Optional[Trajectory]:
        try:
            return await self.client.trajectory(view.id)
        except MillraceError as error:
            if error.code == "not-found":
                return None  # It ended before its first turn.
            raise

    async def _cancel(self, id: str) -> None:
        try:
            await self.client.cancel(id)
        except MillraceError:
            return  # The service cannot be reached, or never had it: the cancellation goes on either way.


def describe_failure(rollout: RolloutView) -> tuple[str, str]:
    """The code of why it has no reward, and a sentence about it."""
    if rollout.failure is None:
        return rollout.state, f"rollout {rollout.id} is {rollout.state} and has no reward"
    failure = rollout.failure
    return failure.code, f"rollout {rollout.id} has no reward: {failure.message} (blame: {failure.blame})"
