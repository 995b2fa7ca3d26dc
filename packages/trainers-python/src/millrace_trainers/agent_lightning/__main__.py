"""`python -m millrace_trainers.agent_lightning ADDRESS`: runs the rollouts of an Agent Lightning server in Millrace. ADDRESS is the gateway
of version 1.0, or with --store the LightningStore of version 0.3."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os

from ..serving import RolloutRuns


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m millrace_trainers.agent_lightning", description=__doc__)
    parser.add_argument("address", help="for example http://127.0.0.1:4747")
    parser.add_argument("--store", action="store_true", help="the address is a LightningStore of Agent Lightning 0.3")
    parser.add_argument("--scenario", help="the scenario of every task; without it a task names its own")
    parser.add_argument("--url", help="the address of the service; by default that in MILLRACE_URL")
    parser.add_argument("--most", type=int, default=256, help="the most rollouts at the same time")
    given = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(given))


async def serve(given: argparse.Namespace) -> None:
    runs = RolloutRuns(given.url)
    try:
        if given.store:
            from agentlightning.store.client_server import LightningStoreClient

            from .store import StoreRunner

            store = LightningStoreClient(given.address)
            await StoreRunner(store, runs, scenario=given.scenario, most=given.most).run()
        else:
            from .controller import Controller

            key = os.environ.get("AGL_KEY")
            await Controller(given.address, runs, key=key, scenario=given.scenario, most=given.most).run()
    finally:
        await runs.close()


if __name__ == "__main__":
    main()
