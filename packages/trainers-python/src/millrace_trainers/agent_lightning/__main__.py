"""`python -m millrace_trainers.agent_lightning ADDRESS`: runs the rollouts of an Agent Lightning server in Millrace. ADDRESS is the gateway
of version 1.0, or with --store the LightningStore of version 0.3."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os

from ..serving import RolloutRuns


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m millrace_trainers.agent_lightning", description=__doc__)
    parser.add_argument("address", help="for example http://127.0.0.1:4747")
    parser.add_argument("--store", action="store_true", help="the address is a LightningStore of Agent Lightning 0.3")
    parser.add_argument("--scenario", help="the scenario of every task; without it a task names its own")
    parser.add_argument("--sampling", type=json.loads, help="of a gateway's training rollouts, as JSON: {\"temperature\": 0.7}")
    parser.add_argument("--val-sampling", type=json.loads, help="of a gateway's validation rollouts; by default as --sampling")
    parser.add_argument("--url", help="the address of the service; by default that in MILLRACE_URL")
    parser.add_argument("--most", type=int, default=256, help="the most rollouts at the same time")
    given = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(given))


async def serve(given: argparse.Namespace) -> None:
    runs = RolloutRuns(given.url)
    try:
        if given.store:
            if given.sampling is not None or given.val_sampling is not None:
                raise SystemExit("--sampling is for a gateway: a store names the sampling parameters with its LLM")
            from .store import LightningStoreClient, StoreRunner

            store = LightningStoreClient(given.address)
            await StoreRunner(store, runs, scenario=given.scenario, most=given.most).run()
        else:
            from .controller import Controller

            key = os.environ.get("AGL_KEY")
            settings = {"sampling": given.sampling, "val_sampling": given.val_sampling}
            await Controller(given.address, runs, key=key, scenario=given.scenario, most=given.most, **settings).run()
    finally:
        await runs.close()


if __name__ == "__main__":
    main()
