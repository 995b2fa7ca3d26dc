// `millrace task`: tools for people who make or choose tasks.

import type { CommandGroup } from '../command/command.ts';
import { attackCommand } from './task-attack.ts';
import { checkCommand } from './task-check.ts';
import { importCommand } from './task-import.ts';
import { showTaskCommand } from './task-show.ts';

export const taskCommands: CommandGroup = {
  name: 'task',
  summary: 'Checks and attacks tasks, imports them from data sets, and shows them.',
  actions: { attack: attackCommand, check: checkCommand, import: importCommand, show: showTaskCommand },
  usual: 'show',
};
