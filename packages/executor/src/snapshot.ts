// The entry of the bundle that becomes a Node snapshot: every module is loaded when the snapshot is made, and `main` runs in each process
// that starts from it.

import 'node:tty'; // the PTY library needs it, and a process started from a snapshot can only load modules that the snapshot holds
import { startupSnapshot } from 'node:v8';
import { main } from './main.ts';

startupSnapshot.setDeserializeMainFunction(() => main(process.argv.slice(2)));
