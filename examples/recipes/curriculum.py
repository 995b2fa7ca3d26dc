"""A curriculum: each step samples the tasks that the policy solves sometimes, by what their groups earned before."""

from __future__ import annotations

import json
import sys

from millrace import Client
from millrace_trainers.feedback import Curriculum

STEPS, TASKS_PER_STEP, GROUP_SIZE = 6, 4, 4


def main(path: str) -> None:
    with open(path) as file:
        tasks = [json.loads(line) for line in file]
    curriculum = Curriculum(tasks)
    with Client() as client:
        for step in range(STEPS):
            chosen = curriculum.choose(TASKS_PER_STEP)
            # Every group counts, also one whose rewards are equal: that is how the curriculum learns that a task is too easy or too hard.
            request = {"scenario": "math", "tasks": chosen, "group_size": GROUP_SIZE, "target": len(chosen), "informative": {"rule": "any"}}
            batch = client.batches.create(request)
            for group in client.batches.groups(batch.id):
                curriculum.add(chosen[group.task_index], group.rewards)  # and the rows of the group go to your optimizer
            weights = [round(curriculum.weight(task), 2) for task in tasks]
            print(step, [tasks.index(task) for task in chosen], weights)
        with open("curriculum.json", "w") as file:
            json.dump(curriculum.state(), file)  # for the checkpoint; `restore` takes it


if __name__ == "__main__":
    main(sys.argv[1])
