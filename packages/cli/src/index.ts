// The command line as a library, for programs that bring their own streams.

export { renderCliDoc } from './cli-doc.ts';
export type { Arguments, Command, CommandGroup, Io } from './command/command.ts';
export { runMillrace } from './main.ts';
