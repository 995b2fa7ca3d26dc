// The file from which bash reads each command. The agent can write to its folder, so it may find anything there; and the time of the last
// access says whether bash has read the command.

#ifndef MILLRACE_COMMAND_FILE_H
#define MILLRACE_COMMAND_FILE_H

#include "../base/bytes.h"

/** The path, in the executor's own folder. */
const char *command_path(void);
/** The agent may have replaced the file by a folder, a link or a pipe without a reader, or filled the folder. Returns what the kernel said, or 0. */
int command_write(struct view command);
/** Finds out whether the disk records accesses. Returns what the kernel said, or 0. */
int command_prepare(void);
/** Whether any process has read the file since it was written. Always true where the disk does not record it. */
bool command_was_read(void);

#endif
