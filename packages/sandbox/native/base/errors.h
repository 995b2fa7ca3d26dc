// Errors of the kernel by name, and which of them mean that the sandbox has used something up.

#ifndef MILLRACE_ERRORS_H
#define MILLRACE_ERRORS_H

#include <stdbool.h>

/** Such as ENOENT. */
const char *error_name(int number);
/** Whether there are no processes, open files, memory, disk or file size left. */
bool is_used_up(int number);
/** `limit` if it is used up, otherwise the kind. */
const char *kind_of(int number, const char *otherwise);
/** A copy of a file descriptor that programs do not inherit. */
int dup_above(int fd);

#endif
