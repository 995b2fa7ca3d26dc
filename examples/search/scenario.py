"""Search-R1's loop in Python: the agent writes <search>…</search> inside its own turn, and goes on with what was found."""

from __future__ import annotations

import re
from dataclasses import dataclass

from millrace.scenario import Append, Opening, Rollout

DOCUMENTS = {"france": "Paris is the capital of France.", "paris": "Paris has 2.1 million inhabitants."}
RULES = "Write <search>what you look for</search> whenever you lack a fact, and your answer as <answer>…</answer>."

name = "search-python"


@dataclass
class Task:
    question: str
    answer: str


def search(query: str) -> str:
    return "\n".join(text for word, text in DOCUMENTS.items() if word in query.lower()) or "Nothing was found."


def init(rollout: Rollout) -> Opening:
    sampling = {"stop": ["</search>", "</answer>"], "include_stop_str_in_output": True}
    return Opening(f"{RULES}\n\n{rollout.task.question}", tools=[], sampling=sampling)


def run(rollout: Rollout) -> str:
    text = rollout.sample()
    while rollout.stopped_by == "</search>":
        query = text.rpartition("<search>")[2].removesuffix("</search>")
        text = rollout.sample(Append(f"\n\n<information>{search(query)}</information>\n\n"))
    found = re.search("<answer>(.*)</answer>$", text, re.DOTALL)
    return found[1].strip() if found else ""


def evaluate(rollout: Rollout) -> float:
    return float(rollout.end.answer.lower() == rollout.task.answer.lower())
