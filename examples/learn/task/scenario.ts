// The scenario of the learning demo: the agent follows notes from room to room with `./look ROOM` in its sandbox and says which animal
// it found. It is judged by its answer and by where it looked, without a second sandbox.

import { RolloutError } from '@millrace/protocol';
import type { Scenario } from '@millrace/scenarios';
import { z } from 'zod';
import { question } from '../model/vocabulary.ts';
import { followNotes, scoreVisit } from './tasks.ts';

const word = z.string().regex(/^[a-z]{1,20}$/);
const task = z.strictObject({ start: word, rooms: z.record(word, word) }).refine((house) => followNotes(house) !== undefined, {
  message: 'the notes must lead from the start to an animal',
});

/** Only shell builtins, so that a look starts one process instead of three. */
const lookScript = `#!/bin/sh
echo "$1" >> /workspace/.seen
IFS= read -r note < "/workspace/rooms/$1" && echo "$note"
`;

export const scenario: Scenario<z.infer<typeof task>> = {
  name: 'house',
  task,
  sandbox: () => ({}),

  async init({ task: { start, rooms }, sandbox, signal }) {
    await sandbox.writeFile('/workspace/look', lookScript, { mode: 0o755, signal });
    for (const [room, note] of Object.entries(rooms)) await sandbox.writeFile(`/workspace/rooms/${room}`, `${note}\n`, { signal });
    return { messages: [{ role: 'user', content: question(start) }], tools: ['bash'] };
  },

  async collect({ sandbox, signal }) {
    try {
      return await sandbox.readFile('/workspace/.seen', { maxBytes: 4096, signal });
    } catch (error) {
      if (error instanceof RolloutError && error.code === 'not-found') return Buffer.alloc(0); // it never looked
      throw error;
    }
  },

  async evaluate({ task: house, end, artifact }) {
    const seen = artifact.toString('utf8').split('\n').slice(0, -1);
    const { reward, isRight, isSolved } = scoreVisit(house, { seen, answer: end.answer.trim() });
    return { reward, details: { right: isRight, solved: isSolved, seen } };
  },
};
