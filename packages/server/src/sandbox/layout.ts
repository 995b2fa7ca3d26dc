// Where things are inside a sandbox, whichever driver made it, and how the executor is called there.

export const home = '/workspace';

/** Node under another name: an agent that kills its own node processes does not mean the executor. */
export const program = '/opt/millrace/bin/executor';
export const programFiles = '/opt/millrace/lib';
export const libraryFolder = '/opt/millrace/libraries';
export const linkFolder = '/run/millrace/link';
export const ownFolder = '/run/millrace/own';
/** Size of `ownFolder`: one command (64 MiB at most) and anything the agent puts there. */
export const ownMiB = 80;

/**
 * The same when the executor's snapshot is made and when it is run. Not to give all of Node's tables new hashes takes 6 ms off its start;
 * whoever knows the hashes is inside, and could slow down nothing but its own executor.
 */
export const snapshotFlags = ['--no-rehash-snapshot'];

/** SIGUSR1 would open a debugger; and an executor compiles too little to be worth three threads for it. */
const nodeFlags = ['--disable-sigusr1', '--v8-pool-size=0', ...snapshotFlags, '--snapshot-blob', `${programFiles}/snapshot`];

export const executorArguments = [...nodeFlags, `${programFiles}/main.js`, linkFolder, ownFolder, home];

/** Beside the image's and the spec's own. Pagers would wait for a key that nobody presses. */
export const baseEnv: Readonly<Record<string, string>> = { HOME: home, LANG: 'C.UTF-8', TERM: 'dumb', PAGER: 'cat', GIT_PAGER: 'cat' };

export const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The files of /etc that are the same in every sandbox. */
export const etcContent: Readonly<Record<string, string>> = {
  passwd: `root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000:agent:${home}:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n`,
  group: 'root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n',
  hosts: '127.0.0.1 localhost sandbox\n::1 localhost\n',
};
