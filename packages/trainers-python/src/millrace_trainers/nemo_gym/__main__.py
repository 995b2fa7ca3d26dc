"""`python -m millrace_trainers.nemo_gym --port 9007`: the agent server. In the configuration of NeMo Gym it is an agent with `host` and
`port` and without `entrypoint`, which is how NeMo Gym names a server that it does not start itself."""

from __future__ import annotations

import argparse
import asyncio

import uvicorn
from nemo_gym.config_types import BaseServerConfig
from nemo_gym.server_utils import ServerClient
from omegaconf import OmegaConf

from .agent import MillraceAgent, MillraceAgentConfig


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m millrace_trainers.nemo_gym", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9007)
    parser.add_argument("--url", help="the address of the service; by default that in MILLRACE_URL")
    parser.add_argument("--tries", type=int, default=3, help="how many times a rollout without a reward is sampled before /run fails")
    given = parser.parse_args()
    config = MillraceAgentConfig(name="millrace", host=given.host, port=given.port, url=given.url, tries=given.tries)
    # It calls no other server of NeMo Gym, so its client needs no configuration.
    client = ServerClient(head_server_config=BaseServerConfig(host=given.host, port=given.port), global_config_dict=OmegaConf.create({}))
    agent = MillraceAgent(config=config, server_client=client)
    app = agent.setup_webserver()
    agent.setup_liveness(app)
    try:
        uvicorn.run(app, host=given.host, port=given.port, log_level="warning")
    finally:
        asyncio.run(agent.close())


if __name__ == "__main__":
    main()
