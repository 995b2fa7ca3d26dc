"""Plays scenarios as environments of GEM: made by its registry, stepped one by one, and in its vector environment."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

sys.path.append(os.environ["MILLRACE_TOKENIZERS"])

import gem  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

from millrace import Client  # noqa: E402
from millrace_trainers.gem import PolicyServer, UnscoredRollout  # noqa: E402

given = json.load(sys.stdin)


class Codec:
    """A tokenizer of Hugging Face's `tokenizers` with the calls of one of `transformers`."""

    def __init__(self, path: str) -> None:
        self._own = Tokenizer.from_file(path)

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return list(self._own.encode(text, add_special_tokens=add_special_tokens).ids)

    def decode(self, ids: Any, *, skip_special_tokens: bool) -> str:
        return str(self._own.decode(ids, skip_special_tokens=skip_special_tokens))


client = Client()
codec = Codec(given["tokenizer"])
server = PolicyServer(client)
for kind, task in given["tasks"].items():
    gem.register(f"millrace:{kind}", "millrace_trainers.gem:MillraceEnv", tasks=[task], tokenizer=codec, server=server, client=client)


def show(result: Any) -> dict[str, Any]:
    observation, reward, terminated, truncated, _info = result
    return {"observation": observation, "reward": reward, "terminated": terminated, "truncated": truncated}


def play(kind: str, actions: list[str]) -> dict[str, Any]:
    env = gem.make(f"millrace:{kind}")
    opening, info = env.reset(seed=1)
    steps = []
    for action in actions:
        steps.append(show(env.step(action)))
        ids = env._seen
    return {"id": info["rollout_id"], "opening": opening, "steps": steps, "ids": ids}


def play_unscored() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for choice in (None, -1.0):
        env = gem.make("millrace:unscored", unscored_reward=choice)
        env.reset()
        try:
            found["chosen"] = show(env.step(given["right"]))
        except UnscoredRollout as error:
            found["error"] = str(error)
    return found


def play_to_limit() -> dict[str, Any]:
    env = gem.make("millrace:right", tasks=[{**given["tasks"]["right"], "limits": {"max_turns": 1}}])
    env.reset()
    return show(env.step(given["look"]))


def close_early() -> str:
    env = gem.make("millrace:right")
    _observation, info = env.reset()
    env.close()
    return client.wait(info["rollout_id"]).state and str(info["rollout_id"])


def play_vector() -> list[float]:
    envs = gem.make_vec(["millrace:right", "millrace:wrong", "millrace:right"], async_mode=True)
    envs.reset()
    envs.step([given["look"]] * 3)
    _observations, rewards, *_rest = envs.step([given["right"], given["wrong"], given["right"]])
    for one in envs.envs:
        one.close()
    return [float(one) for one in rewards]


report = {
    "episodes": {kind: play(kind, [given["look"], given[kind]]) for kind in ("right", "wrong")},
    "unscored": play_unscored(),
    "truncated": play_to_limit(),
    "cancelled": close_early(),
    "vector": play_vector(),
}
server.close()
print(json.dumps(report))
