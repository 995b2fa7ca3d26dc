// The layout of a sandbox, the same for every driver: where things are inside, and how the executor is called.

export const home = '/workspace';

export const executorProgram = '/opt/millrace/bin/executor';
/** The program that runs Python's cells. */
export const executorFiles = '/opt/millrace/lib';
/** Where the harness of a spec is mounted. */
export const harnessFolder = '/opt/millrace/harness';
/** Shared with the worker: the socket, `env.json` and `limits.json`. Read-only inside. */
export const linkFolder = '/run/millrace/link';
/** Where the executor writes: the current command, and IPython's files. */
export const executorFolder = '/run/millrace/own';
/** Large enough for one command (at most 64 MiB) and some files that the agent puts there. */
export const executorFolderMiB = 80;

export const executorArguments = [linkFolder, executorFolder, home, executorFiles];

/** Added to the variables of the image; those of the spec override them. A pager would wait for a key press that never comes. */
export const baseEnv: Readonly<Record<string, string>> = { HOME: home, LANG: 'C.UTF-8', TERM: 'dumb', PAGER: 'cat', GIT_PAGER: 'cat' };

export const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The files of /etc that are the same in every bubblewrap sandbox. A sandbox with the machine's network mounts the machine's resolv.conf. */
export const etcContent: Readonly<Record<string, string>> = {
  passwd: `root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000:agent:${home}:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n`,
  group: 'root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n',
  hosts: '127.0.0.1 localhost sandbox\n::1 localhost\n',
  'resolv.conf': '',
};
