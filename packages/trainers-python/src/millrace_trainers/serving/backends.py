"""The trainer's LLM servers as Millrace's backends: a server that a trainer names joins once, and again if its model has another name."""

from __future__ import annotations

import asyncio
from typing import Optional

from millrace import AsyncClient


class TrainerBackends:
    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._models: dict[str, Optional[str]] = {}
        self._lock = asyncio.Lock()

    async def join(self, url: str, *, model: Optional[str] = None, api_key: Optional[str] = None) -> None:
        """A backend that joined without a name keeps serving whatever its server serves."""
        address = url.rstrip("/").removesuffix("/v1")
        async with self._lock:
            if address not in self._models:
                self._models.update({one.url.rstrip("/"): one.model for one in await self._client.backends.list()})
            known = self._models.get(address)
            if address not in self._models or (known is not None and model is not None and known != model):
                await self._client.backends.join(address, model=model, api_key=api_key)
                self._models[address] = model
