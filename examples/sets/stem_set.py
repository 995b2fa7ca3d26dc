"""The stem set: questions of MMLU in science subjects with worked solutions, from lm-eval, and quantities of SciBench with worked
solutions, from OpenCompass."""

import json
import re
import sys

from wheel import open_wheel, write_tasks

MMLU = "lm_eval/tasks/mmlu/flan_cot_fewshot/_cot_prompts.json"
SCIBENCH = "opencompass/configs/datasets/scibench/lib_prompt/"
SUBJECTS = (
    "abstract_algebra anatomy astronomy college_biology college_chemistry college_computer_science college_mathematics college_physics "
    "computer_security conceptual_physics electrical_engineering elementary_mathematics high_school_biology high_school_chemistry "
    "high_school_computer_science high_school_mathematics high_school_physics high_school_statistics machine_learning"
).split()


def choices(text):
    """Questions, options, solutions and answers of one subject."""
    for block in text.split("\n\nQ: ")[1:]:
        found = re.fullmatch(
            r"(.+)\n\(A\) (.+) \(B\) (.+) \(C\) (.+) \(D\) (.+?)\nA: (.+?The answer is \(([A-D])\)\.)\s*", block, re.DOTALL
        )
        if found:
            question, *options, solution, answer = found.groups()
            yield {"kind": "choice", "question": question, "options": options, "answer": answer, "solution": solution}


def quantities(text):
    """The worked problems of one textbook."""
    parts = re.split(r"Promblem \d+: ", text)[1:]
    for part in parts:
        found = re.fullmatch(r"(.+?)\s*Explanation for Problem \d+:(.+\\boxed\{([^{}]+)\}\.?)\s*", part, re.DOTALL)
        if found:
            question, solution, answer = found.groups()
            yield {"kind": "numeric", "question": question, "answer": answer.strip(), "solution": solution.strip()}


def main(wheels, out):
    prompts = json.loads(open_wheel(wheels, "lm_eval").read(MMLU))
    tasks = [(f"mmlu-{subject}-{at}", "stem", task) for subject in SUBJECTS for at, task in enumerate(choices(prompts[subject]))]
    compass = open_wheel(wheels, "opencompass")
    for path in sorted(name for name in compass.namelist() if name.startswith(SCIBENCH) and name.endswith("_sol.txt")):
        book = path[len(SCIBENCH) : -len("_sol.txt")]
        found = quantities(compass.read(path).decode())
        tasks += [(f"scibench-{book}-{at}", "stem", task) for at, task in enumerate(found)]
    write_tasks(out, tasks)


main(*sys.argv[1:])
