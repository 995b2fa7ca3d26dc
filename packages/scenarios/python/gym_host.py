"""Runs one Python environment inside a sandbox: a worker sends `reset`, `step` and `close` as JSON lines, and gets observations and rewards.
Gymnasium-style environments (GEM), SkyRL-Gym and OpenEnv are called as their own trainers call them. Standard library only."""

import asyncio
import importlib
import inspect
import json
import os
import sys
import traceback


def find(name):
    """`package.module:attribute`."""
    module, _, attribute = name.partition(":")
    found = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def wait(value):
    return asyncio.run(_wait(value)) if inspect.isawaitable(value) else value


async def _wait(value):
    return await value


def to_text(value):
    return value if isinstance(value, str) else json.dumps(to_plain(value), ensure_ascii=False)


def to_plain(value):
    """What JSON can hold: numpy numbers, pydantic models and the like lose their types."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, dict):
        return {str(key): to_plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [to_plain(one) for one in value]
    for method in ("model_dump", "item", "tolist"):
        if hasattr(value, method):
            try:
                return to_plain(getattr(value, method)())
            except Exception:
                continue  # the next way to read it
    return repr(value)


def say(text):
    return [{"role": "user", "content": text}]


def plain_messages(messages):
    """Chat messages as plain dictionaries; a text is one user message."""
    if isinstance(messages, str):
        return say(messages)
    return [{"role": one["role"], "content": to_text(one["content"])} for one in (to_plain(one) for one in messages)]


class Gymnasium:
    """`reset(seed)` and `step(action)`: GEM, and everything that follows Gymnasium with text."""

    def __init__(self, task):
        self.env = self.make(task["env"], task["args"])

    def make(self, name, args):
        if ":" in name:
            return find(name)(**args)
        return importlib.import_module("gymnasium").make(name, **args)

    def reset(self, task):
        given = self.env.reset(**({"seed": task["seed"]} if task.get("seed") is not None else {}))
        observation, info = given if isinstance(given, tuple) else (given, {})
        return {"messages": say(self.read(observation, info))}

    def step(self, action):
        observation, reward, terminated, *rest = self.env.step(action)
        done = bool(terminated) or (len(rest) > 1 and bool(rest[0]))
        info = rest[-1] if rest else {}
        return {"messages": say(self.read(observation, info)), "reward": float(reward), "done": done, "info": to_plain(info)}

    def read(self, observation, _info):
        return to_text(observation)

    def close(self):
        if hasattr(self.env, "close"):
            self.env.close()
        return {}


class Gem(Gymnasium):
    def make(self, name, args):
        importlib.import_module("gem.envs")
        return importlib.import_module("gem").make(name, **args)

    def read(self, observation, info):
        """What the player must see of the current state is in `info`."""
        suffix = info.get("suffix") if isinstance(info, dict) else None
        return f"{to_text(observation)}\n{suffix}" if suffix else to_text(observation)


class SkyRL:
    """`init(prompt)`, `step(action)` and `close()`."""

    def __init__(self, task):
        config = dict(task["args"])
        extras = config.pop("extras", {})
        name = task["env"]
        if ":" in name:
            self.env = find(name)(env_config=config, extras=extras)
        else:
            self.env = importlib.import_module("skyrl_gym").make(name, env_config=to_config(config), extras=extras)

    def reset(self, task):
        messages, _ = self.env.init(task["prompt"])
        return {"messages": plain_messages(messages)}

    def step(self, action):
        given = self.env.step(action)
        reply = {"messages": plain_messages(given["observations"]), "reward": float(given["reward"]), "done": bool(given["done"])}
        return {**reply, "info": to_plain(given.get("metadata") or {})}

    def close(self):
        metrics = to_plain(self.env.get_metrics()) if hasattr(self.env, "get_metrics") else {}
        self.env.close()
        return {"metrics": metrics}


def to_config(values):
    """Environments read their settings as attributes."""
    try:
        return importlib.import_module("omegaconf").OmegaConf.create(values)
    except ImportError:
        return type("Config", (), values)()


class OpenEnv:
    """An `Environment` of OpenEnv, in this process: `reset()` and `step(action)` with typed actions and observations."""

    FRAME = ("done", "reward", "metadata")

    def __init__(self, task):
        kind = find(task["env"])
        self.env = kind(**task["args"])
        self.action = find(task["action"]) if task.get("action") else action_of(kind)

    def reset(self, task):
        observation = self.env.reset(**({"seed": task["seed"]} if task.get("seed") is not None else {}))
        return {"messages": say(self.read(observation))}

    def step(self, action):
        observation = self.env.step(self.write(action))
        reward = observation.reward
        return {
            "messages": say(self.read(observation)),
            "reward": float(reward) if reward is not None else 0.0,
            "done": bool(observation.done),
            "info": to_plain(getattr(observation, "metadata", {}) or {}),
        }

    def write(self, text):
        """The text is the one text field of the action; an action with several fields is written as JSON by the model."""
        fields = [name for name in self.action.model_fields if name != "metadata"]
        if len(fields) == 1:
            return self.action(**{fields[0]: text})
        return self.action(**json.loads(text))

    def read(self, observation):
        fields = {name: one for name, one in to_plain(observation).items() if name not in self.FRAME}
        texts = [one for one in fields.values() if isinstance(one, str)]
        return texts[0] if len(texts) == 1 and len(fields) == 1 else json.dumps(fields, ensure_ascii=False)

    def close(self):
        if hasattr(self.env, "close"):
            self.env.close()
        return {}


def action_of(kind):
    for base in getattr(kind, "__orig_bases__", ()):
        for one in getattr(base, "__args__", ())[:1]:
            if hasattr(one, "model_fields"):
                return one
    raise TypeError(f"the action type of {kind.__name__} is not known: name it in the task, as `action`: \"module:Class\"")


KINDS = {"gymnasium": Gymnasium, "gem": Gem, "skyrl": SkyRL, "openenv": OpenEnv}


def main():
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the environment prints is not part of the protocol
    env = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["op"] == "reset":
                env = KINDS[request["task"]["kind"]](request["task"])
                reply = wait(env.reset(request["task"]))
            elif request["op"] == "step":
                reply = wait(env.step(request["action"]))
            else:
                reply = wait(env.close())
        except Exception as error:
            reply = {"error": {"type": type(error).__name__, "message": str(error), "stack": traceback.format_exc()[-4000:]}}
        out.write(json.dumps(reply) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
