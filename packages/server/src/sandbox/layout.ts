// The layout of a sandbox, the same for every driver: where things are inside, and how the executor is called.

export const home = '/workspace';

/** Node under another name, so that an agent that kills its own node processes does not hit the executor. */
export const executorProgram = '/opt/millrace/bin/executor';
export const executorFiles = '/opt/millrace/lib';
export const libraryFolder = '/opt/millrace/libraries';
/** Shared with the worker: the socket, `env.json` and `limits.json`. Read-only inside. */
export const linkFolder = '/run/millrace/link';
/** Where the executor writes: the current command, and IPython's files. */
export const executorFolder = '/run/millrace/own';
/** Large enough for one command (at most 64 MiB) and some files that the agent puts there. */
export const executorFolderMiB = 80;

/**
 * Must be the same when the executor's snapshot is made and when it is run. Not rehashing Node's tables makes the start 6 ms faster.
 * The hashes are then known inside the sandbox, where they could be used only to slow down that sandbox's own executor.
 */
export const snapshotFlags = ['--no-rehash-snapshot'];

/**
 * SIGUSR1 would open a debugger. One thread for V8's own work: by default it has one for each core of the machine, and they count as processes.
 * And V8 would copy its built-in code next to its heap: 2 MiB for each executor, where otherwise all of them share the pages of the program.
 * Without the copy, a start takes 2 ms less, and the first hundred calls 5 % less each.
 */
const nodeFlags = ['--disable-sigusr1', '--v8-pool-size=1', '--no-short-builtin-calls', ...snapshotFlags];

const program = ['--snapshot-blob', `${executorFiles}/snapshot`, `${executorFiles}/main.js`];
export const executorArguments = [...nodeFlags, ...program, linkFolder, executorFolder, home];

/** Added to the variables of the image; those of the spec override them. A pager would wait for a key press that never comes. */
export const baseEnv: Readonly<Record<string, string>> = { HOME: home, LANG: 'C.UTF-8', TERM: 'dumb', PAGER: 'cat', GIT_PAGER: 'cat' };

export const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The files of /etc that are the same in every bubblewrap sandbox. */
export const etcContent: Readonly<Record<string, string>> = {
  passwd: `root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000:agent:${home}:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n`,
  group: 'root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n',
  hosts: '127.0.0.1 localhost sandbox\n::1 localhost\n',
};
