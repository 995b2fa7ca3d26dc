"""A travel desk: the agent finds out what a customer wants, and books it. The customer is another LLM, behind any server with OpenAI's chat
route: USER_URL, USER_MODEL and USER_KEY in the environment of the service."""

from __future__ import annotations

import json
import os
import urllib.request
from dataclasses import dataclass
from typing import Annotated

from millrace.scenario import Opening, Rollout, ScenarioError, Score, tool

name = "travel-desk"
MOST_REPLIES = 8
DESK = "You work at a travel desk. Find out where and when the customer wants to travel, book it once with the tool, and say goodbye."
USER = """You play a customer of a travel desk. Your wish: {wish}
Answer in one sentence, and tell only what you are asked for. Say DONE when the desk says goodbye."""


@dataclass
class Task:
    wish: Annotated[str, "What the customer wants, as only the customer knows it."]
    city: Annotated[str, "The booking that is right."]
    day: str


@tool
def book(rollout: Rollout, city: Annotated[str, "Where to."], day: Annotated[str, "A day of the week."]) -> str:
    """Books a journey."""
    rollout.state.setdefault("booked", []).append([city, day])
    return f"Booked: {city}, {day}."


def init(rollout: Rollout) -> Opening:
    rollout.state["talk"] = []
    opening = say_as_user(rollout, "Good morning. What can I do for you?")
    return Opening([{"role": "system", "content": DESK}, {"role": "user", "content": opening}], tools=[book])


def run(rollout: Rollout) -> None:
    said = rollout.sample()
    for _ in range(MOST_REPLIES):
        answer = say_as_user(rollout, said)
        if "DONE" in answer:
            return
        said = rollout.sample(answer)


def evaluate(rollout: Rollout) -> Score:
    booked, wanted = rollout.state.get("booked", []), [rollout.task.city, rollout.task.day]
    return Score(1.0 if booked == [wanted] else 0.0, {"booked": booked, "replies": len(rollout.state["talk"]) // 2})


def say_as_user(rollout: Rollout, said: str) -> str:
    """What the customer answers. To the customer's model, the desk is the user."""
    talk = rollout.state["talk"]
    talk.append({"role": "user", "content": said})
    messages = [{"role": "system", "content": USER.format(wish=rollout.task.wish)}, *talk]
    body = json.dumps({"model": os.environ.get("USER_MODEL", ""), "temperature": 0.7, "messages": messages})
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ.get('USER_KEY', '')}"}
    request = urllib.request.Request(f"{os.environ.get('USER_URL')}/chat/completions", body.encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            answer = str(json.load(reply)["choices"][0]["message"]["content"])
    except (OSError, ValueError, LookupError) as error:
        # The agent cannot cause this, so there is no reward, and the rollout is tried again.
        raise ScenarioError("sandbox", f"the customer's model cannot be used: {error}") from error
    talk.append({"role": "assistant", "content": answer})
    return answer
