// The files of a new scenario, as text. They run as they are: the scripted policy solves the task.

export const scenarioFile = { typescript: 'scenario.ts', python: 'scenario.py' } as const;
type ScenarioLanguage = keyof typeof scenarioFile;

export function makeScenarioFiles(name: string, language: ScenarioLanguage): Readonly<Record<string, string>> {
  const file = scenarioFile[language];
  return {
    [file]: scenarios[language].replaceAll('NAME', name),
    'tasks.jsonl': `${JSON.stringify({ scenario: name, task: { text: 'the mill turns the wheel', words: 5 } })}\n`,
    'policy.jsonl': `${policy.map((turn) => JSON.stringify(turn)).join('\n')}\n`,
    'README.md': readme.replaceAll('NAME', name).replaceAll('FILE', file).replace('EDITOR', editors[language]),
  };
}

const typescript = `// The scenario NAME: the agent gets a text file and is asked how many words it has.

import { defineScenario, z } from 'millrace/scenario';

export const scenario = defineScenario({
  name: 'NAME',

  // What a task looks like. A submission that does not match is refused, and the message names the field.
  task: z.strictObject({
    text: z.string().min(1).describe('The content of text.txt.'),
    words: z.int().min(0).describe('The right answer; the agent never sees it.'),
  }),

  // The sandbox that the agent works in. Leave this out for tasks that need none.
  sandbox: () => ({}),

  // Prepares the sandbox, and returns what the agent sees first and which tools it has.
  async init({ task, sandbox, signal }) {
    await sandbox.writeFile('/workspace/text.txt', \`\${task.text}\\n\`, { signal });
    const content = 'How many words does text.txt have? Call finish with the number as the answer.';
    return { messages: [{ role: 'user', content }], tools: ['bash', 'finish'] };
  },

  // Measures the reward. Throw when you cannot measure it: then there is no reward, rather than a wrong one.
  async evaluate({ task, end }) {
    const given = Number(end.answer);
    return { reward: given === task.words ? 1 : 0, details: { given: end.answer, wanted: task.words } };
  },
});
`;

const python = `"""The scenario NAME: the agent gets a text file and is asked how many words it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from millrace.scenario import Opening, Rollout, Score

name = "NAME"

# The sandbox that the agent works in. Leave this out for tasks that need none.
sandbox: dict = {}


@dataclass\nclass Task:
    """What a task looks like. A submission that does not match is refused, and the message names the field."""

    text: Annotated[str, "The content of text.txt."]
    words: Annotated[int, "The right answer; the agent never sees it."]


def init(rollout: Rollout) -> Opening:
    """Prepares the sandbox, and returns what the agent sees first and which tools it has."""
    rollout.sandbox.write_file("text.txt", rollout.task.text + "\\n")
    return Opening("How many words does text.txt have? Call finish with the number as the answer.", tools=["bash", "finish"])


def evaluate(rollout: Rollout) -> Score:
    """Measures the reward. Raise when you cannot measure it: then there is no reward, rather than a wrong one."""
    given, wanted = rollout.end.answer.strip(), str(rollout.task.words)
    return Score(1.0 if given == wanted else 0.0, {"given": given, "wanted": wanted})
`;

const scenarios: Readonly<Record<ScenarioLanguage, string>> = { typescript, python };

const editors: Readonly<Record<ScenarioLanguage, string>> = {
  typescript: 'npm install --save-dev millrace',
  python: 'pip install millrace',
};

const policy = [
  { text: 'I count the words.', tool_calls: [{ name: 'bash', arguments: { command: 'wc -w < text.txt' } }] },
  { tool_calls: [{ name: 'finish', arguments: { answer: '5' } }] },
];

const readme = `# NAME

| file | what it is |
|---|---|
| FILE | how a task is prepared, which tools the agent has, and how it is scored |
| tasks.jsonl | tasks, one per line, as \`millrace submit\` reads them |
| policy.jsonl | what a scripted agent says, one turn per line, for \`millrace try\` |

1. Run one task with the scripted agent, in a real sandbox, without a model:

       millrace try FILE

2. Change the scenario, and run it again. \`--task '{"text": "a b", "words": 2}'\` tries another task.

3. Serve it, and submit the tasks:

       millrace serve --tokenizer path/to/model --scenarios FILE
       millrace backend add http://gpu-0:8000
       millrace submit tasks.jsonl

A turn in policy.jsonl is \`{"text": "…", "tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}]}\`; both fields are optional.
For types in your editor: \`EDITOR\`.
`;
