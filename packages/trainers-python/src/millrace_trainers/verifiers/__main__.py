"""`python -m millrace_trainers.verifiers --address tcp://127.0.0.1:5000`: verifiers' own env server with Millrace as its environment."""

from __future__ import annotations

import argparse
import asyncio

from verifiers.v1.serve.server import EnvServer
from verifiers.v1.utils.loaders import resolve_env_config


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m millrace_trainers.verifiers", description=__doc__)
    parser.add_argument("tasks", nargs="?", help="a file of tasks; a trainer that sends its own tasks needs none here")
    parser.add_argument("--address", default="tcp://127.0.0.1:5000", help="where to listen; port 0 takes a free one")
    parser.add_argument("--url", help="the address of the service; by default that in MILLRACE_URL")
    parser.add_argument("--max-concurrent", type=int, help="the most rollouts at the same time; by default no limit")
    parser.add_argument("--no-join", action="store_true", help="do not add the trainer's LLM servers to the service's pool")
    given = parser.parse_args()
    taskset = {"id": "millrace_verifiers", "tasks": given.tasks}
    config = resolve_env_config({"taskset": taskset, "url": given.url, "join": not given.no_join})
    server = EnvServer(config, address=given.address, max_concurrent=given.max_concurrent)
    print(server.address, flush=True)
    asyncio.run(server.run())


if __name__ == "__main__":
    main()
