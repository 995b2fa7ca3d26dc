"""Five kinds of small chores in a shell. Each needs a command whose output decides the answer, `follow` two, the second of which depends on
the output of the first; `rename` is judged by the files that are left."""

from __future__ import annotations

import random

from .task_set import Part, Task, TaskSet, answer, call, result

TITLES = {"count": "lines with a word", "follow": "a file named in a file", "sum": "sum of a column", "largest": "the largest file", "rename": "rename a file"}
WORDS = (
    "apple pear plum fig lemon lime mango melon grape cherry peach olive onion carrot bean pea corn rice wheat oat "
    "iron gold zinc tin lead silver salt sand clay stone chalk glass paper wood wool silk cotton linen rope wire"
).split()


def draw(rng: random.Random, kind: str) -> Task:
    one, two, three, four, five, six = rng.sample(WORDS, 6)
    task: Task = {"kind": kind}
    if kind == "count":
        # The word is there at least once, so grep succeeds.
        lines = [f"{one} {two}", *(" ".join(rng.sample((one, two, three, four), 2)) for _ in range(rng.randint(4, 11)))]
        rng.shuffle(lines)
        files = {f"{five}.txt": _text(lines)}
        question, found = f"How many lines of {five}.txt contain the word {one}?", str(sum(one in line.split() for line in lines))
    elif kind == "follow":
        files = {f"{one}-{six}.txt": f"{two}.txt\n", f"{two}.txt": f"{four}\n", f"{three}.txt": f"{five}\n"}
        question, found = f"The file {one}-{six}.txt has the name of another file. What is in that other file?", four
    elif kind == "sum":
        numbers = [rng.randint(1, 99) for _ in range(rng.randint(3, 7))]
        files = {f"{one}-{two}.csv": _text([f"{rng.choice(WORDS)},{number}" for number in numbers])}
        question, found = f"What is the sum of the numbers in the second column of {one}-{two}.csv?", str(sum(numbers))
    elif kind == "largest":
        names = [f"{word}.txt" for word in (one, two, three, four)]
        sizes = rng.sample(range(1, 30), len(names))
        files = {name: "x" * size + "\n" for name, size in zip(names, sizes)}
        question, found = f"Which of the files {', '.join(names)} is the largest?", names[sizes.index(max(sizes))]
    else:
        files = {f"{one}.txt": f"{three}\n", f"{two}.txt": f"{four}\n"}
        task["left"] = {f"{five}.txt": f"{three}\n", f"{two}.txt": f"{four}\n"}
        question, found = f"Rename the file {one}.txt to {five}.txt. The result is {six}.", six
    return {**task, "question": f"{question} Give the result as \\boxed{{result}}.", "answer": found, "files": files}


def demonstrate(task: Task) -> list[Part]:
    """The outputs are those that bash gives; a test compares them with a real shell."""
    files, found, kind = task["files"], task["answer"], task["kind"]
    first = next(iter(files))
    if kind == "count":
        word = task["question"].split(" the word ")[1].split("?")[0]
        steps = [(f"grep -cw {word} {first}", found)]
    elif kind == "follow":
        second = files[first].strip()
        steps = [(f"cat {first}", second), (f"cat {second}", found)]
    elif kind == "sum":
        steps = [(f"awk -F, '{{s+=$2}} END {{print s}}' {first}", found)]
    elif kind == "largest":
        steps = [("ls -S | head -1", found)]
    else:
        new = next(name for name in task["left"] if name not in files)
        steps = [(f"mv {first} {new}", "[no output]")]
    return [part for command, output in steps for part in (call("bash", "command", command), result(output))] + [answer(found)]


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


CHORES = TaskSet("chores", TITLES, max_turns=4, has_sandbox=True, draw=draw, demonstrate=demonstrate)
