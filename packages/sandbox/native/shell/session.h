// The persistent shell: runs one command at a time and keeps state from command to command. No matter what a command does to the shell,
// the next command has a working one, in the last working directory that still exists.

#ifndef MILLRACE_SESSION_H
#define MILLRACE_SESSION_H

#include "../wire/link.h"

/** Starts the first bash. */
void shell_open(void);
/** A call made while a command runs waits for it. Its timeout starts when its command starts. */
void shell_run(const struct request *request);

#endif
